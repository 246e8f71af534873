// Package e2e holds the tests of the whole: the real programs, the embedded server, real processes that are killed and frozen.
//
// Each test has a house of its own: a state directory, a call log, a file of faults. Nothing in here waits by sleeping.
package e2e
