package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/rundir"
)

// acting are the verbs that change something. All others read, and have --json.
var acting = strings.Fields(`
	starter allow budget cancel codec codec-key codec-serve console console-link console-logout
	completion completion-bash completion-fish completion-powershell completion-zsh demo fork help init intake mcp pause rebuild replay
	report resume revert steer run server server-build server-env server-ui server-start
	server-stop snapshot store token token-create token-revoke worker scripted-agent
`)

// jsonKeys reads the list of docs/json.md: the keys of each verb.
func jsonKeys(t *testing.T) map[string][]string {
	page, err := os.ReadFile("../../docs/json.md")
	require.NoError(t, err)
	out := map[string][]string{}
	_, section, _ := strings.Cut(string(page), "\n## Keys of each command\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile("(?m)^- `([^`]+)`: (`.+)$").
		FindAllStringSubmatch(strings.ReplaceAll(section, "\n  ", " "), -1)
	for _, row := range rows {
		for _, key := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			out[row[1]] = append(out[row[1]], key[1])
		}
	}
	return out
}

func TestEveryReadingVerbHasJSON(t *testing.T) {
	a := &app{out: io.Discard, err: &outlet{to: io.Discard}}
	documented := jsonKeys(t)
	var walk func(cmd *cobra.Command, path string)
	walk = func(cmd *cobra.Command, path string) {
		for _, c := range cmd.Commands() {
			name := strings.TrimSpace(path + " " + c.Name())
			walk(c, name)
			if c.Hidden || slices.Contains(acting, strings.ReplaceAll(name, " ", "-")) {
				continue
			}
			require.NotNil(t, c.Flags().Lookup("json"), "%s reads and has no --json", name)
			_, there := documented[name]
			_, withShow := documented[name+" --show"]
			require.True(t, there || withShow, "docs/json.md does not document %s", name)
		}
	}
	walk(a.root(), "")
}

// TestJSONShapes runs every verb of docs/json.md on a run, and compares the keys with the list.
func TestJSONShapes(t *testing.T) {
	home := t.TempDir()
	for name, value := range map[string]string{"PASSBOOK_STATE_DIR": filepath.Join(home, "state"),
		"XDG_CONFIG_HOME": home, "TEMPORAL_ADDRESS": "", "PASSBOOK_SANDBOX_MODE": "none"} {
		t.Setenv(name, value)
	}
	require.NoError(t, os.CopyFS(filepath.Join(home, "corpus"), subOf(t, "corpus")))
	dir, file := filepath.Join(home, "run"), filepath.Join(home, "corpus", "pipeline.yaml")
	pausedRun(func(err error) { require.NoError(t, err) }, file, dir, filepath.Join(home, "state"), "11112222-3333",
		"user-requested")
	runless := strings.Fields("list config version server-status plan")
	absent := map[string]any{ // what this run has nothing of
		"checkpoints": rundir.Listed{}, "snapshot list": api.Snapshot{},
		"snapshot diff": DiffReport{}, "snapshot checkout": CheckoutReport{},
		"store gc": operations.Collected{},
		"promote":  operations.Promoted{},
		"remove":   removal{}, "amend": operations.Amended{},
		"verify": operations.Verified{}, "token list": TokenLine{}, "run": Started{}, "adopt": Adoptable{},
	}
	for verb, keys := range jsonKeys(t) {
		t.Run(verb, func(t *testing.T) {
			if sample, ok := absent[verb]; ok {
				raw, err := json.Marshal(sample)
				require.NoError(t, err)
				require.Equal(t, keys, keysOf(t, verb, raw, ""))
				return
			}
			args := append(strings.Fields(verb), "--json")
			switch {
			case verb == "plan":
				args = append(args, file)
			case !slices.Contains(runless, strings.ReplaceAll(verb, " ", "-")):
				args = append(args, dir)
			}
			var out, output bytes.Buffer
			Main(args, strings.NewReader(""), &out, &output)
			printed := keysOf(t, verb, out.Bytes(), output.String())
			if verb == "plan" { // TestJSONObjectsAreDocumented compares the list with the type
				keys = slices.DeleteFunc(keys, func(key string) bool { return !slices.Contains(printed, key) })
			}
			require.Equal(t, keys, printed)
		})
	}
}

// keysOf returns the keys of the first object of an output, in order.
func keysOf(t *testing.T, verb string, out []byte, output string) []string {
	dec := json.NewDecoder(bytes.NewReader(out))
	start, err := dec.Token()
	require.NoError(t, err, "%s prints %q", verb, output)
	require.Equal(t, json.Delim('{'), start)
	var keys []string
	for dec.More() {
		key, err := dec.Token()
		require.NoError(t, err)
		keys = append(keys, key.(string))
		var value json.RawMessage
		if err := dec.Decode(&value); !errors.Is(err, io.EOF) {
			require.NoError(t, err)
		}
	}
	return keys
}
