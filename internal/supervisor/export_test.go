package supervisor

import (
	"sync"
	"testing"
)

// Carry replaces the program that this one carries.
func Carry(t *testing.T, program []byte) {
	before, name := carried, carriedName
	carried, carriedName = program, sync.OnceValue(nameCarried)
	t.Cleanup(func() { carried, carriedName = before, name })
}
