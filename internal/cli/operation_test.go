package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/api"
)

// TestKeysOfOperationsAreFlags: an operation needs no code of this package.
func TestKeysOfOperationsAreFlags(t *testing.T) {
	all := api.Table()
	pause := all[slices.IndexFunc(all, func(o api.Operation) bool { return o.Name == "pause" })]
	for key, flag := range map[string]string{"now": "bool", "note": "string", "json": ""} {
		f := (&app{}).operation(pause).Flags().Lookup(key)
		if flag == "" {
			require.Nil(t, f, key)
			continue
		}
		require.Equal(t, flag, f.Value.Type())
		require.NotEmpty(t, f.Usage)
	}
}

// TestCommandsOfOperationsHaveAllKeys: a key of a type that is not a flag needs a separate command.
func TestCommandsOfOperationsHaveAllKeys(t *testing.T) {
	own := map[string]bool{}
	for _, c := range written() {
		own[c.name] = c.new != nil
	}
	for _, o := range api.Table() {
		if own[o.Command] {
			continue
		}
		require.Equal(t, o.Name, o.Command, "there is no command %s", o.Command)
		flags := (&app{}).operation(o).Flags()
		for i := range o.Input.NumField() {
			key, _, _ := strings.Cut(o.Input.Field(i).Tag.Get("json"), ",")
			if key != "run" && key != "-" {
				require.NotNil(t, flags.Lookup(strings.TrimPrefix(flagOf(key), "--")), "%s: %s", o.Name, key)
			}
		}
	}
}

// TestOperationPrintsFields of an output without a message.
func TestOperationPrintsFields(t *testing.T) {
	w := newHost(t)
	var out strings.Builder
	a := &app{settings: config.Settings{StateDir: w.state}, out: &out}
	all := api.Table()
	cmd := a.operation(all[slices.IndexFunc(all, func(o api.Operation) bool { return o.Name == "checkpoints" })])
	cmd.SetArgs([]string{"page"})
	require.NoError(t, cmd.Execute())
	require.Contains(t, out.String(), "checkpoints: ")
}
