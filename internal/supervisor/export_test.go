package supervisor

import "testing"

// Carry replaces the program that this one carries.
func Carry(t *testing.T, program []byte) {
	before := carried
	carried = program
	t.Cleanup(func() { carried = before })
}
