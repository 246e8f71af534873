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

// TestSetText: requirement 002 §9.1.
func TestSetText(t *testing.T) {
	stages := []run.StageRef{{Name: "corpus", Sets: []string{"S1", "S2"}}, {Name: "polish"}}
	for want, s := range map[string]run.State{
		"S1 pending":               {Stages: stages, Next: run.Place{Round: 1}},
		"S1":                       {Stages: stages, Next: run.Place{Round: 1}, Set: "S1"},
		"S1 completed, S2 pending": {Stages: stages, Next: run.Place{Round: 2}},
		"S2 completed":             {Stages: stages, Next: run.Place{Round: 3}},
		"":                         {Stages: stages, Next: run.Place{Stage: 1, Round: 1}},
	} {
		require.Equal(t, want, s.SetText())
	}
	require.Empty(t, run.State{Next: run.Place{Stage: 2}}.SetText())
}

// TestSameDamageWhereTheLineIsNotKnown: digests over all lines change with every line that is added.
func TestSameDamageWhereTheLineIsNotKnown(t *testing.T) {
	whole := run.JournalDamage{File: "events.jsonl", Found: "aa"}
	require.True(t, whole.Same(run.JournalDamage{File: "events.jsonl", Found: "bb"}))
	require.False(t, whole.Same(run.JournalDamage{File: "events.jsonl", Line: 3, Found: "aa"}))
	line := run.JournalDamage{File: "events.jsonl", Line: 3, Found: "aa"}
	require.False(t, line.Same(run.JournalDamage{File: "events.jsonl", Line: 3, Found: "bb"}))
	segment := run.JournalDamage{File: run.SegmentFile + "ff", Found: "damaged"}
	require.False(t, segment.Same(run.JournalDamage{File: run.SegmentFile + "ff", Found: run.Missing}))
}
