package run_test

import (
	"fmt"
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
		{"child.started", `{"index":0,"lane":%s}`},
		{"child.started", `{"index":0,"lane":"k","suffix":%s}`},
		{"child.ended", `{"index":0,"lane":%s,"outcome":"stopped"}`},
		{"run.resumed", `{"state":{"lanes":{"again":[{"lane":%s}]}}}`},
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
	for _, name := range []string{"run.json", "Meta.JSON", "workspace/.git/config", "_orchestrator/state.json",
		"lanes/work/k/run.json"} {
		_, err := run.ParseEvent([]byte(`{"kind":"run.start","payload":{"artifact":{"file":"` + name + `"}}}`))
		var refused *run.NameError
		require.ErrorAs(t, err, &refused)
	}
}
