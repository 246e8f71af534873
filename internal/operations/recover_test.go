package operations

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// drop removes a blob from a store.
func drop(t *testing.T, s *store.Store, digest string) {
	t.Helper()
	require.NoError(t, s.Walk(t.Context(), func(o store.Object) error {
		if string(o.Digest) != digest {
			return nil
		}
		removed, err := s.Remove(t.Context(), o)
		require.True(t, removed)
		return err
	}))
}

// TestRecoverListsWhatIsMissing removes one object from the store at a time. The rest is restored, the removed one is
// listed.
func TestRecoverListsWhatIsMissing(t *testing.T) {
	const claimed = `{"version":1,"call":%q,"prompt":%q,"at":"2026-01-02T03:04:05.000Z"}`
	const answered = `{"version":1,"call":%q,"stdout":{"digest":%q},"stderr":{"digest":""},"exit":{}}`
	type world struct {
		s             *store.Store
		prompt, reply run.Blob
		out           run.Blob
		rows          []byte
	}
	build := func(t *testing.T) world {
		w := world{s: testStore(t)}
		require.NoError(t, os.RemoveAll(directoryOf(t, w.s, "r1",
			entry{run.KindRunStart, run.RunStart{RunID: "r1", ThreadID: "r1", Epoch: 1,
				Definition: blobOf(t, w.s, "stages: []").Digest,
				Artifact:   &run.ArtifactRef{File: "page.html", Seed: blobOf(t, w.s, "seed")}}},
			entry{run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1}},
			entry{run.KindArtifactUpdated, run.ArtifactUpdated{Step: "001",
				Artifact: blobOf(t, w.s, "<p>so far</p>")}}).Root))
		w.prompt, w.reply = blobOf(t, w.s, "asked"), blobOf(t, w.s, "the reply")
		w.out = blobOf(t, w.s,
			`{"type":"result","is_error":false,"result":"the reply","total_cost_usd":0.25,"usage":{"input_tokens":1,`+
				`"output_tokens":1}}`)
		for name, data := range map[string]string{
			"calls/r1/g0.001.1.-.1.abc/claim-001": fmt.Sprintf(claimed, "r1/g0.001.1.-.1.abc", w.prompt.Digest),
			"calls/r1/g0.001.1.-.1.abc/result":    fmt.Sprintf(answered, "r1/g0.001.1.-.1.abc", w.out.Digest),
			"calls/r1/g0.002.1.-.1.def/claim-001": fmt.Sprintf(claimed, "r1/g0.002.1.-.1.def", w.prompt.Digest),
		} {
			must(w.s.Create(t.Context(), name, []byte(data)))(t)
		}
		w.rows = fmt.Appendf(nil, `{"seq":7,"call":"r1/g0.001.1.-.1","turn":"001","role":"builder","reply":%q}`+"\n"+
			`{"half`, w.reply.Digest)
		return w
	}
	always := []string{
		"1 lines of the traces", "the journal, events 1 to 7 at least",
		"the answer of call r1/g0.002.1.-.1.def: it was claimed, and its outcome is unknown",
		"artifact, notes and workspace after events 2 to 7",
	}
	const first, second = "calls/r1_g0.001.1.-.1/", "calls/r1_g0.002.1.-.1.def/"
	for _, tt := range []struct {
		lost    string
		lose    func(*world)
		missing string
		files   []string // besides the artifact and the definition
	}{
		{"nothing", func(*world) {}, "", []string{first + "prompt.md", first + "reply.txt", second + "prompt.md"}},
		{"the reply", func(w *world) { drop(t, w.s, w.reply.Digest) }, "the reply of call r1/g0.001.1.-.1: ",
			[]string{first + "prompt.md", second + "prompt.md"}},
		{"the prompt", func(w *world) { drop(t, w.s, w.prompt.Digest) }, "the prompt of call r1/g0.001.1.-.1: ",
			[]string{first + "reply.txt"}},
		{"the output", func(w *world) { drop(t, w.s, w.out.Digest) }, "call r1/g0.001.1.-.1.abc: the output: ",
			[]string{first + "prompt.md", first + "reply.txt", second + "prompt.md"}},
		{"the call", func(w *world) {
			w.rows = []byte(strings.NewReplacer("g0.001", "g0.003", `"turn":"001"`, `"turn":1,"step":"001"`).Replace(
				string(w.rows)))
		}, "call r1/g0.003.1.-.1 (001, builder): the store has neither claim nor answer of it",
			[]string{"calls/r1_g0.001.1.-.1.abc/prompt.md", "calls/r1_g0.001.1.-.1.abc/reply.txt",
				second + "prompt.md", "calls/r1_g0.003.1.-.1/reply.txt"}},
	} {
		t.Run(tt.lost, func(t *testing.T) {
			w := build(t)
			tt.lose(&w)
			dir := filepath.Join(t.TempDir(), "new")
			out := must(Recover(t.Context(), w.s, Recovery{RunID: "r1", Traces: w.rows, Dir: dir}))(t)
			output := strings.Join(out.Missing, "\n")
			for _, what := range append(always, tt.missing) {
				require.Contains(t, output, what)
			}
			if tt.missing == "" {
				require.Len(t, out.Missing, len(always), output)
				require.Equal(t, 0.25, out.USD)
				require.Equal(t, "the reply", filesIn(t, dir)[first+"reply.txt"])
			}
			require.ElementsMatch(t, append(tt.files, "page.html", "given/pipeline.yaml"), out.Files)
			require.Equal(t, "seed", filesIn(t, dir)["page.html"], "as of the newest checkpoint")
			require.NoFileExists(t, projector.At(dir).Path(layout.EventsFile))
		})
	}
}
