// Package conformance holds the tests of the checklist (README.md): from outside, through the program and the
// files that it leaves.
//
// Nothing in here uses the code. A check has the ids of its rows in its name: go test ./test/conformance -run
// 'Rows/ST-01'. The rows share a few runs, which are made when the first row needs them. Failures are shown by scripts,
// testdata/script: go test ./test/conformance -run 'Scripts/exhausted' -v.
//
// The rows run one after the other in one environment: a state directory with a server and a worker, a call log and a
// fault file. Scripts run at the same time, up to four at once, each in its own environment. No test needs a browser,
// npm or a real agent. PASSBOOK_TEST_PROGRAMS is the absolute path of a folder with the programs; without it they are
// built.
package conformance
