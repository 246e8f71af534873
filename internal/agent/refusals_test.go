package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/modelapi"
)

// TestRefusalsAreRecognized reads what the real programs printed for each refusal of their providers that is known.
// TestRecordedRefusals of test/realcli makes the recordings.
func TestRefusalsAreRecognized(t *testing.T) {
	files, err := filepath.Glob("testdata/refusals/*.jsonl")
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, file := range files {
		form := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		program, _, _ := strings.Cut(form, "-")
		means := map[string]run.LimitKind{}
		for _, r := range modelapi.Refusals[program] {
			means[r.Name] = r.Means
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		require.Len(t, lines, len(means), file)
		for _, line := range lines {
			var r struct {
				Refusal, Stdout, Stderr string
				Exit                    int
			}
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			t.Run(form+"/"+r.Refusal, func(t *testing.T) {
				exit := Exit{Code: r.Exit, Started: time.Date(2026, 11, 28, 19, 0, 0, 0, time.UTC)}
				_, failure := ReadReply(form, []byte(r.Stdout), exit, r.Stderr, Prices{}, 100)
				require.NotNil(t, failure)
				require.Equal(t, means[r.Refusal], failure.Cause, failure.Message)
			})
		}
	}
}
