// Package conformance holds the tests of the checklist (docs/conformance.md): from outside, through the program and the files that it leaves.
//
// Nothing in here knows the code. A row of the checklist is a subtest with its id: go test ./conformance -run 'Rows/ST-01'. The rows share a few
// runs, which are made when the first row asks for them. Failures are told by scripts, testdata/script: go test ./conformance -run 'Scripts/exhausted' -v.
package conformance
