package main

// passbook has the packages whose code is changed, and the packages whose tests must detect it.
var passbook = []target{
	{folder: "run", tests: []string{"run", "workflows", "internal/fsck"}},
	{folder: "pipeline", tests: []string{"pipeline"}},
	{folder: "internal/pass", tests: []string{"internal/pass"}},
	{folder: "rundir", tests: []string{"rundir", "internal/fsck", "internal/watch"}},
	{folder: "internal/records", tests: []string{"internal/records", "internal/fsck"}},
	{folder: "internal/projector", tests: []string{"internal/projector", "internal/fsck"}},
	{folder: "internal/journal", tests: []string{"internal/journal", "internal/projector", "internal/fsck"}},
	{folder: "internal/fsck", tests: []string{"internal/fsck"}},
	{folder: "internal/figures", tests: []string{"internal/figures", "internal/report"}},
	{folder: "internal/costs", tests: []string{"internal/costs"}},
	{folder: "internal/evidence", tests: []string{"internal/evidence"}},
	{folder: "workflows", tests: []string{"workflows"}},
}
