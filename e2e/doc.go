// Package e2e holds the tests of the whole: the real programs, the embedded server, real processes that are killed and frozen.
//
// A house is a machine with a server of its own, for tests that tell one story: its state directory, call log and file of faults. Nothing in
// here waits by sleeping.
//
// The kill harness is for thousands of runs. Its grounds are a server, a pipeline and the outcome of an undisturbed run; each run is on a site,
// a machine of its own; a victim (e2e/victim) is a worker or starter that counts its points (e2e/point) and dies at one of them. What it left is
// an instant, taken at each death and at the end, and a site's invariants hold over all of them. A walk goes through all points, a soak through
// random moments. Another way to disturb a run is another function between site.start and site.finish; another promise of recovery is
// another line in site.invariants, and an injury in TestEveryInvariantCanFail.
package e2e
