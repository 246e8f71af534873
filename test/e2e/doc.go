// Package e2e tests the whole system: the real programs, the embedded server, and real processes that are killed and
// suspended.
//
// An environment is a machine with a separate server for the tests of one scenario: its state directory, call log and
// fault file. No test waits by sleeping.
//
// The kill harness is for thousands of runs. Its grounds are a server, a pipeline and the outcome of an undisturbed
// run. Each run is on a site, a separate machine. A victim (e2e/victim) is a worker or starter that counts its points
// (e2e/point) and is killed at one of them. An instant is the state that it leaves, taken at each kill and at the end;
// the invariants of a site apply to all instants. A walk goes through all points, a soak through random moments. To
// disturb a run in another way, add a function between site.start and site.finish. To test another promise of recovery,
// add a line to site.invariants, and a row to TestWalkDetectsDamage.
package e2e
