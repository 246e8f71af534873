package main

// passbook has the packages whose code is changed, and the packages whose tests must detect it.
var passbook = []target{
	{folder: "run", tests: []string{"run", "workflows", "rundir"}},
	{folder: "pipeline", tests: []string{"pipeline"}},
	{folder: "internal/pass", tests: []string{"internal/pass"}},
	{folder: "rundir", tests: []string{"rundir", "internal/watch"}},
	{folder: "internal/view", tests: []string{"internal/view", "internal/report"}},
	{folder: "internal/agent/gate", tests: []string{"internal/agent/gate"}},
	{folder: "workflows", tests: []string{"workflows"}},
}
