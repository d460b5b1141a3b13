// The folded mix of hash h in every lane: words 0 to 3 in all_a, 4 to 7 in all_b.
let fold${h}x0 = fold(mix${h}x0);
//@if ROWS == 1
let all${h}a = vec4<u32>(subgroupShuffle(fold${h}x0, first), subgroupShuffle(fold${h}x0, first + 1u),
  subgroupShuffle(fold${h}x0, first + 2u), subgroupShuffle(fold${h}x0, first + 3u));
let all${h}b = vec4<u32>(subgroupShuffle(fold${h}x0, first + 4u), subgroupShuffle(fold${h}x0, first + 5u),
  subgroupShuffle(fold${h}x0, first + 6u), subgroupShuffle(fold${h}x0, first + 7u));
//@end
//@if ROWS == 2
let fold${h}x1 = fold(mix${h}x1);
let all${h}a = vec4<u32>(subgroupShuffle(fold${h}x0, first), subgroupShuffle(fold${h}x0, first + 1u),
  subgroupShuffle(fold${h}x0, first + 2u), subgroupShuffle(fold${h}x0, first + 3u));
let all${h}b = vec4<u32>(subgroupShuffle(fold${h}x1, first), subgroupShuffle(fold${h}x1, first + 1u),
  subgroupShuffle(fold${h}x1, first + 2u), subgroupShuffle(fold${h}x1, first + 3u));
//@end
