// Package conformance holds the tests of the checklist (docs/conformance.md): from outside, through the program and the
// files that it leaves.
//
// Nothing in here knows the code. A row of the checklist is a subtest with its id: go test ./test/conformance -run
// 'Rows/ST-01'. The rows share a few runs, which are made when the first row asks for them. Failures are shown by
// scripts, testdata/script: go test ./test/conformance -run 'Scripts/exhausted' -v.
//
// The rows run one after the other in one environment: a state directory with a server and a worker, a call log and a
// fault file. Scripts and documentation pages run at the same time, up to four at once, each in its own environment.
// PASSBOOK_TEST_PROGRAMS names a folder, by an absolute path, that holds the programs starter and worker; without it
// they are built.
package conformance
