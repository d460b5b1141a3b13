// The rounds of FLIGHT hashes (docs: pow.md, "Hash"), inside a kernel that has declared g, salt, mix and page of each.
//@if LOPSIDED == 1
var highest: u32;
//@end
for (var quad = 0u; quad < job.quads; quad++) {
  let source = first + (quad & ${LANE_MASK}u);
  //@each c 4
  //@each h FLIGHT
  //@if ROWS == 1
  g${h} = fnv((quad * 4u + ${c}u) ^ salt${h}, subgroupShuffle(mix${h}x0.${COMPONENT[c]}, source));
  //@end
  //@if ROWS == 2
  g${h} = fnv((quad * 4u + ${c}u) ^ salt${h}, subgroupShuffle(select(mix${h}x0.${COMPONENT[c]}, mix${h}x1.${COMPONENT[c]}, (quad & 4u) == 4u), source));
  //@end
  //@end
  //@each h FLIGHT
  page${h}x0 = read_row(g${h} >> PAGE_SHIFT, lane ^ (g${h} & 7u));
  //@if ROWS == 2
  page${h}x1 = read_row(g${h} >> PAGE_SHIFT, (lane + 4u) ^ (g${h} & 7u));
  //@end
  //@end
  //@if LOPSIDED == 1
  highest = g0;
  //@each h FLIGHT
  highest = max(highest, g${h});
  //@end
  if (highest >= TAIL_WORDS) {
    //@each h FLIGHT
    if (g${h} >= TAIL_WORDS) {
      page${h}x0 = tail_row(g${h} >> PAGE_SHIFT, lane ^ (g${h} & 7u));
      //@if ROWS == 2
      page${h}x1 = tail_row(g${h} >> PAGE_SHIFT, (lane + 4u) ^ (g${h} & 7u));
      //@end
    }
    //@end
  }
  //@end
  //@each h FLIGHT
  mix${h}x0 = fnv_row(mix${h}x0, page${h}x0.${ROTATION[c]});
  //@if ROWS == 2
  mix${h}x1 = fnv_row(mix${h}x1, page${h}x1.${ROTATION[c]});
  //@end
  //@end
  //@end
}
