package run

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMillisecondsReadsWhatTimeParseReads below, at and above the limits of each field.
func TestMillisecondsReadsWhatTimeParseReads(t *testing.T) {
	fields := [][]string{
		{"0000", "1969", "1970", "2026", "9999", "20a6"}, {"00", "01", "02", "04", "12", "13", "1x"},
		{"00", "01", "28", "29", "30", "31", "32"}, {"00", "23", "24"}, {"00", "59", "60"}, {"00", "59", "60"},
		{"000", "001", "999", "9 9"},
	}
	check := func(ts string) {
		want, err := time.Parse(TimeFormat, ts)
		got, ok := milliseconds(ts)
		require.Equal(t, err == nil, ok, ts)
		if err == nil {
			require.Equal(t, want.UnixMilli(), got, ts)
		}
	}
	base := []string{"2026", "02", "28", "23", "59", "58", "123"}
	join := func(f []string) string {
		return fmt.Sprintf("%s-%s-%sT%s:%s:%s.%sZ", f[0], f[1], f[2], f[3], f[4], f[5], f[6])
	}
	for i, values := range fields {
		for _, value := range values {
			f := append([]string(nil), base...)
			f[i] = value
			check(join(f))
		}
	}
	for i, c := range join(base) {
		if strings.ContainsRune("-T:.Z", c) {
			check(join(base)[:i] + "x" + join(base)[i+1:])
		}
	}
	for _, ts := range []string{"", "2026-02-28T23:59:58Z", "2024-02-29T00:00:00.000Z", "2023-02-29T00:00:00.000Z",
		"2026-02-28T23:59:58.123+00:00", "0001-01-01T00:00:00.001Z", "2026-01-01T00:00:00,000Z", "not a time",
		"2026-01-01T00:00:00.000z", "2026-01-01 00:00:00.000Z", "-026-01-01T00:00:00.000Z"} {
		check(ts)
	}
}

// TestUsualNamesAreLocal: the fast check accepts only local names.
func TestUsualNamesAreLocal(t *testing.T) {
	const alphabet = "az09AZ-_./ `{@[:^\x00é"
	var names []string
	for _, a := range alphabet {
		for _, b := range alphabet {
			for _, c := range "az./-" {
				names = append(names, string([]rune{a, b, c}))
			}
		}
	}
	for _, name := range append(names, "", "a", ".", "..", "a/..", "a//b", "/a", "a/", "a.b/c-d_e.f") {
		clean := path.Clean(name)
		local := fs.ValidPath(clean) && clean != "." && !strings.ContainsFunc(name, control)
		require.Equal(t, local, LocalName(name), "%q", name)
		require.False(t, usual(name) && !local, "%q", name)
	}
	for _, name := range []string{"a", "azAZ09-_", "a.b/c", "_orchestrator/state.json"} {
		require.True(t, usual(name), name)
	}
	for _, name := range []string{"", ".a", "a.", "a/", "a//b", "a..b", "a b", "a`", "a{", "a@", "a[", "/a"} {
		require.False(t, usual(name), name)
	}
}

func TestPositionOfARun(t *testing.T) {
	stages := []StageRef{{Name: "plan"}, {Name: "work", Rounds: 3}}
	for want, s := range map[string]State{
		"2 stages":            {Status: Done},
		"2 stages, 1 round":   {Status: Done, Rounds: 1},
		"stage 0 of 2":        {Status: Running},
		"stage 1 of 2 (plan)": {Status: Failed, Phase: "plan", Rounds: 1},
		"stage 2 of 2 (work), round 2 of at most 3": {Status: Running, Phase: "work", Round: 2, Rounds: 1},
	} {
		s.Wording, s.Stages = WordingStages, stages
		require.Equal(t, want, s.Progress())
		s.Verdict = "approved"
		require.Equal(t, want+", verdict approved", s.Progress())
	}
	s := State{Status: Running, Phase: "work", Wording: WordingStages, Stages: stages, Round: 1, Verdict: "approved",
		Lanes: &Lanes{Count: 3, Done: 1}}
	require.Equal(t, "stage 2 of 2 (work), round 1 of at most 3, 1 of 3 lanes done", s.Progress())
}
