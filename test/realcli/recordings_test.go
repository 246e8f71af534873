package realcli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/test/modelapi"
)

var record = flag.Bool("record", false, "record what the programs print for each refusal, into internal/agent/testdata")

// recording is what a program printed for a refusal of its provider: a line of internal/agent/testdata/refusals.
type recording struct {
	Refusal string `json:"refusal"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"` // of the program
	Exit    int    `json:"exit"`
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr,omitempty"`
}

// recorded are the forms in which programs are recorded, and the refusals that are recorded anew in each test.
var recordedForms = map[string][]string{
	adapter.ClaudeStream: {"API usage"}, adapter.ClaudeJSON: nil, adapter.CodexJSONL: {"overloaded in the stream"},
	adapter.GeminiStream: nil, adapter.GeminiJSON: nil,
}

// TestRecordedRefusals makes recordings again and compares them with those in the tree; with -record it writes all.
func TestRecordedRefusals(t *testing.T) {
	for name, again := range recordedForms {
		f := forms()[name]
		file := filepath.Join("../../internal/agent/testdata/refusals", name+".jsonl")
		if *record {
			t.Run(name, func(t *testing.T) {
				var text bytes.Buffer
				lines := json.NewEncoder(&text)
				lines.SetEscapeHTML(false)
				for _, r := range modelapi.Refusals[f.cli.Name] {
					require.NoError(t, lines.Encode(f.record(t, r)))
				}
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, os.WriteFile(file, text.Bytes(), 0o644))
			})
			continue
		}
		for _, refusal := range again {
			t.Run(name+" "+refusal, func(t *testing.T) {
				t.Parallel()
				at := slices.IndexFunc(modelapi.Refusals[f.cli.Name], func(r modelapi.Refusal) bool { return r.Name == refusal })
				got := f.record(t, modelapi.Refusals[f.cli.Name][at])
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				for lines := json.NewDecoder(bytes.NewReader(text)); ; {
					var want recording
					require.NoError(t, lines.Decode(&want), "no recording")
					if want.Refusal == refusal {
						require.Equal(t, want, got)
						return
					}
				}
			})
		}
	}
}

// record calls the program with an API that refuses each request.
func (f form) record(t *testing.T, r modelapi.Refusal) recording {
	t.Helper()
	if len(r.Header) > 1 && f.cli.Name == "claude" { // the windows are those of a subscription
		f.cli.Environ = func(url string) []string {
			return []string{"ANTHROPIC_BASE_URL=" + url, "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-test",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=1"}
		}
	}
	p := f.start(t, modelapi.Turn{Refusal: &r, Times: modelapi.Always})
	o := p.call(f.args, nil)
	program := installed(t, f.cli)
	file, err := os.Open(program[len(program)-1])
	require.NoError(t, err)
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	return recording{Refusal: r.Name, Version: f.cli.Version, SHA256: hex.EncodeToString(sum.Sum(nil)), Exit: o.exit.Code,
		Stdout: steady(o.stdout, p), Stderr: steady(o.stderr, p)}
}

var (
	// changing are the fields that differ from call to call.
	changing = regexp.MustCompile(`"(?:uuid|session_id|thread_id|(?:\w*_)?timestamp|(?:duration|ttft|retry_delay)\w*|` +
		`\w*request_id|requestID|time_to_\w+)": ?(?:"[^"]*"|[\d.]+)`)
	uuids   = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	instant = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d[.\d-]*Z`)
)

// steady returns an output without what differs from call to call, and without lists of tools.
func steady(text string, p *place) string {
	text = strings.NewReplacer(p.api.URL, "http://api.example.com", p.root, "/place",
		strings.TrimPrefix(p.api.URL, "http://"), "api.example.com").Replace(text)
	var out strings.Builder
	for line := range strings.Lines(text) {
		var event map[string]any
		if json.Unmarshal([]byte(line), &event) == nil && event["subtype"] == "init" {
			line = `{"type":"system","subtype":"init","session_id":"","model":"` + event["model"].(string) + `"}` + "\n"
		}
		line = changing.ReplaceAllStringFunc(line, func(field string) string {
			name, value, _ := strings.Cut(field, ":")
			if strings.Contains(value, `"`) {
				return name + `:"x"`
			}
			return name + `:1`
		})
		out.WriteString(instant.ReplaceAllString(uuids.ReplaceAllString(line, "0-0-0-0-0"), "2026-11-28T19:00:00Z"))
	}
	return out.String()
}
