package projector

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/rundir"
)

// TestEncoder: after every change of the records, the text is the one of an encoder that keeps nothing.
func TestEncoder(t *testing.T) {
	var c encoder
	s := rundir.NewState()
	pass := func(n int) rundir.PassRecord {
		return rundir.PassRecord{GlobalPassNumber: n, Description: "a <b> \"passRecords\": {}\n  \"checkpoints\": [] é",
			ArtifactHash: new("a"), CorpusFilesLoaded: []string{}, ReferenceFilesLoaded: []string{"x", "y"}}
	}
	point := func(id string) rundir.CheckpointRecord {
		score := 2.5
		return rundir.CheckpointRecord{ID: id, QualitySnapshot: rundir.QualitySnapshot{LastPAScore: &score}}
	}
	for _, change := range []struct {
		name string
		do   func()
	}{
		{"nothing", func() {}},
		{"no lists", func() { s.PassRecords, s.Checkpoints = nil, nil }},
		{"lists again", func() {
			s.PassRecords, s.Checkpoints = rundir.ByNumber[rundir.PassRecord]{}, []rundir.CheckpointRecord{}
		}},
		{"a pass", func() { s.PassRecords["2"] = pass(2) }},
		{"a pass with a higher number", func() { s.PassRecords["10"] = pass(10) }},
		{"a pass between them", func() { s.PassRecords["9"] = pass(9) }},
		{"checkpoints", func() { s.Checkpoints = append(s.Checkpoints, point("cp-1"), point("cp-2"), point("cp-3")) }},
		{"another record of a pass", func() {
			r := pass(9)
			r.ArtifactHash = new("b")
			s.PassRecords["9"] = r
		}},
		{"another item in a record's list", func() {
			r := pass(2)
			r.ReferenceFilesLoaded = []string{"x", "z"}
			s.PassRecords["2"] = r
		}},
		{"an empty list that was none", func() {
			r := pass(10)
			r.CorpusFilesLoaded = nil
			s.PassRecords["10"] = r
		}},
		{"another checkpoint at the same place", func() { s.Checkpoints[1] = point("cp-X") }},
		{"records before a revert", func() {
			delete(s.PassRecords, "10")
			s.Checkpoints = s.Checkpoints[:1]
		}},
		{"other records after it", func() {
			s.PassRecords["11"], s.Checkpoints = pass(11), append(s.Checkpoints, point("cp-4"))
		}},
		{"one record in place of another", func() {
			delete(s.PassRecords, "2")
			s.PassRecords["1"] = pass(1)
		}},
		{"no records", func() {
			clear(s.PassRecords)
			s.Checkpoints = s.Checkpoints[:0]
		}},
		{"other members", func() { s.RunID, s.ErrorHistory = "another", []rundir.ErrorRecord{{}} }},
	} {
		change.do()
		want, err := disk.Marshal(s)
		require.NoError(t, err)
		got, err := c.marshal(&s)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), change.name)
	}
}

// TestEncoderRefuses: a record that JSON cannot express is an error, not a document without it.
func TestEncoderRefuses(t *testing.T) {
	s := rundir.NewState()
	s.PassRecords["1"] = rundir.PassRecord{Tokens: rundir.PassTokens{EstimatedCostUSD: math.NaN()}}
	_, err := new(encoder).marshal(&s)
	require.ErrorAs(t, err, new(*json.UnsupportedValueError))
	s = rundir.NewState()
	s.Checkpoints = []rundir.CheckpointRecord{{CostAtCheckpoint: math.NaN()}}
	_, err = new(encoder).marshal(&s)
	require.ErrorAs(t, err, new(*json.UnsupportedValueError))
}
