package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/api"
)

// TestOperationsAreVerbs: an operation needs no code of this package. Its keys are flags, its run an argument.
func TestOperationsAreVerbs(t *testing.T) {
	w := newHost(t)
	t.Setenv("TEMPORAL_ADDRESS", "")
	var out strings.Builder
	a := &app{settings: config.Settings{StateDir: w.state, RunRoot: filepath.Join(w.root, "runs")}, out: &out}
	table := map[string]api.Operation{}
	for _, o := range api.Table() {
		table[o.Name] = o
	}
	cmd := a.operation(table["checkpoints"])
	cmd.SetArgs([]string{filepath.Join(w.root, "page"), "--all", "--json"})
	require.NoError(t, cmd.Execute())
	require.True(t, json.Valid([]byte(out.String())), out.String())

	out.Reset()
	cmd = a.operation(table["checkpoints"])
	cmd.SetArgs([]string{filepath.Join(w.root, "page")})
	require.NoError(t, cmd.Execute())
	require.Contains(t, out.String(), "checkpoints: ")

	for key, flag := range map[string]string{"now": "bool", "note": "string", "json": ""} {
		f := a.operation(table["pause"]).Flags().Lookup(key)
		if flag == "" {
			require.Nil(t, f, key)
			continue
		}
		require.Equal(t, flag, f.Value.Type())
		require.NotEmpty(t, f.Usage)
	}
}

// TestVerbsOfOperationsHaveAllKeys: a key of a type that is not a flag needs a separate verb.
func TestVerbsOfOperationsHaveAllKeys(t *testing.T) {
	own := map[string]bool{}
	for _, v := range written() {
		own[v.name] = true
	}
	for _, o := range api.Table() {
		if own[o.Verb] {
			continue
		}
		require.Equal(t, o.Name, o.Verb, "there is no verb %s", o.Verb)
		flags := (&app{}).operation(o).Flags()
		for i := range o.Input.NumField() {
			key, _, _ := strings.Cut(o.Input.Field(i).Tag.Get("json"), ",")
			if key != "run" && key != "-" {
				require.NotNil(t, flags.Lookup(strings.TrimPrefix(flagOf(key), "--")), "%s: %s", o.Name, key)
			}
		}
	}
}
