package run_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestCloneSharesNoSlice: folds change the slices of a state in place.
func TestCloneSharesNoSlice(t *testing.T) {
	var s run.State
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice {
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		}
	}
	c := s.Clone()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Slice {
			copied := reflect.ValueOf(c).Field(i)
			require.NotEqual(t, f.Pointer(), copied.Pointer(), v.Type().Field(i).Name)
		}
	}
}
