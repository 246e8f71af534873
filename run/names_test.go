package run_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestNamesThatLeaveTheDirectoryAreDamage reads events whose names become paths.
func TestNamesThatLeaveTheDirectoryAreDamage(t *testing.T) {
	for _, row := range []struct{ kind, payload string }{
		{"run.start", `{"artifact":{"file":%s}}`},
		{"run.start", `{"notes":[{"name":"n","file":%s}]}`},
		{"run.start", `{"state":{"notes":[{"name":"n","file":%s}]}}`},
		{"run.start", `{"run_id":%s}`},
		{"run.resumed", `{"state":{"notes":[{"name":"n","file":%s}]}}`},
		{"run.reverted", `{"state":{"notes":[{"name":"n","file":%s}]}}`},
		{"pass.start", `{"step":"s/1","dir":%s}`},
		{"pass.start", `{"step":"s/1","member":%s}`},
		{"pass.attempt", `{"step":"s/1","role":%s}`},
		{"pass.end", `{"step":%s}`},
		{"note.appended", `{"file":%s}`},
		{"screenshots.captured", `{"dir":%s}`},
		{"checkpoint.created", `{"id":%s}`},
	} {
		for _, bad := range []string{`".."`, `"../escaped.html"`, `"/etc/passwd"`, `"a/../../b"`, `"a\u0000b"`, `"a\nb"`,
			`"."`} {
			line := fmt.Sprintf(`{"seq":1,"ts":"2026-01-01T00:00:00.000Z","kind":%q,"phase":null,"payload":%s}`, row.kind,
				fmt.Sprintf(row.payload, bad))
			_, err := run.ParseEvent([]byte(line))
			var name *run.NameError
			require.ErrorAs(t, err, &name, line)
		}
		line := fmt.Sprintf(`{"seq":1,"ts":"2026-01-01T00:00:00.000Z","kind":%q,"phase":null,"payload":%s}`, row.kind,
			fmt.Sprintf(row.payload, `"notes-S3.ä"`))
		_, err := run.ParseEvent([]byte(line))
		require.NoError(t, err, line)
	}
}

// TestReservedNamesAreRefusedAsArtifacts refuses an artifact that would replace a file of the directory.
func TestReservedNamesAreRefusedAsArtifacts(t *testing.T) {
	for _, name := range []string{"run.json", "Meta.JSON", "workspace/.git/config", "_orchestrator/state.json"} {
		_, err := run.ParseEvent([]byte(`{"kind":"run.start","payload":{"artifact":{"file":"` + name + `"}}}`))
		var refused *run.NameError
		require.ErrorAs(t, err, &refused)
	}
}

// TestNamesOfPassesAreReadAsEncodingJSONReadsThem compares the names found without decoding with encoding/json.
func TestNamesOfPassesAreReadAsEncodingJSONReadsThem(t *testing.T) {
	keys := []string{"dir", "step", "member", "role", "Dir", "STEP", "mEmber", "ſtep", `\u0072ole`,
		"title", "gives", "dirs"}
	values := []string{`"passes/pass-001"`, `"builder"`, `""`, `"001"`, `"ä"`, `"a\u002fb"`, `null`,
		`7`, `[]`, `{"role":".."}`,
		`".."`, `"../up"`, `"/etc"`, `"a/../../b"`, `"a\nb"`, `"a b"`, `"."`, `"a."`, `"a/"`, `"a//b"`, `{"x":[1,"}"]}`}
	kinds := []string{"pass.start", "pass.attempt", "pass.end"}
	random := rand.New(rand.NewPCG(1, 2))
	bad := 0
	for range 20_000 {
		var members []string
		for range random.IntN(6) {
			key, value := keys[random.IntN(len(keys))], values[random.IntN(len(values))]
			if random.IntN(2) == 0 {
				value = values[random.IntN(4)]
			}
			members = append(members, []string{"", " "}[random.IntN(2)]+`"`+key+`" :`+value)
		}
		payload := `{` + strings.Join(members, ",") + ` }`
		line := `{"seq":1,"ts":"x","kind":"` + kinds[random.IntN(3)] + `","phase":null,"payload":` + payload + `}`
		want := wrongName(t, payload)
		_, err := run.ParseEvent([]byte(line))
		if want == nil {
			require.NoError(t, err, line)
			continue
		}
		bad++
		require.Equal(t, error(want), err, line)
	}
	require.Greater(t, bad, 2000)
	require.Less(t, bad, 18_000)
}

// wrongName returns the first name in the payload of a pass that leaves the directory, as encoding/json reads it.
func wrongName(t *testing.T, payload string) *run.NameError {
	t.Helper()
	var p run.Pass
	var mistyped *json.UnmarshalTypeError
	if err := json.Unmarshal([]byte(payload), &p); err != nil && !errors.As(err, &mistyped) {
		require.NoError(t, err, payload)
	}
	for _, n := range []struct {
		what, name string
		good       func(string) bool
	}{{"dir", p.Dir, run.LocalName}, {"member", p.Member, run.SingleName}, {"role", p.Role, run.SingleName},
		{"step", p.Step, run.LocalName}} {
		if n.name != "" && !n.good(n.name) {
			return &run.NameError{What: n.what, Name: n.name}
		}
	}
	return nil
}
