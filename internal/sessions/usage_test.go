package sessions_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/run"
)

// TestUsageOfSession: the files are as codex 0.169 and gemini 0.61 leave them when they are killed while a tool runs.
func TestUsageOfSession(t *testing.T) {
	for name, row := range map[string]struct {
		file string
		want sessions.Usage
	}{
		"codex": {`{"type":"turn_context","payload":{"model":"gpt-5.5"}}
{"type":"token_usage_record","payload":{"usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":5}}}
{"type":"event_msg","payload":{"type":"token_count","info":null}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":10,` +
			`"cached_input_tokens":4,"output_tokens":5}}}}
{"type":"response_item","payload":{"type":"message","content":[{"text":"token_usage_record"}]}}
{"type":"token_usage_record","payload":{"usage":{"input_tokens":30,"cache_write_input_tokens":7,"output_tokens":2}}}
{"type":"token_usage_record","payload":{"us`, sessions.Usage{
			Models: []adapter.ModelUsage{{Model: "gpt-5.5",
				Usage: adapter.Usage{Tokens: run.Tokens{Input: 29, Output: 7, CacheRead: 4, CacheWrite: 7}}}},
			Total: run.Tokens{Input: 6, Output: 5, CacheRead: 4},
		}},
		"gemini": {`{"id":"u","type":"user","content":[{"text":"\"tokens\""}]}
{"id":"a","type":"gemini","tokens":{"input":10,"output":5,"cached":4,"thoughts":1,"tool":2},"model":"gemini-2.5-pro"}
{"id":"a","type":"gemini","tokens":{"input":10,"output":5,"cached":4,"thoughts":1,"tool":2},"model":"gemini-2.5-pro"}
{"$set":{"messages":[{"id":"a","type":"gemini","tokens":{"input":10,"output":5,"cached":4,"thoughts":1,"tool":2},` +
			`"model":"gemini-2.5-pro"},{"id":"b","type":"gemini","tokens":{"input":3,"output":1},"model":"gemini-2.5-flash"}]}}
{"id":"c","type":"gemini","tok`, sessions.Usage{Models: []adapter.ModelUsage{
			{Model: "gemini-2.5-pro", Usage: adapter.Usage{Tokens: run.Tokens{Input: 8, Output: 6, CacheRead: 4}}},
			{Model: "gemini-2.5-flash", Usage: adapter.Usage{Tokens: run.Tokens{Input: 3, Output: 1}}},
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			p, home := program(t, name)
			require.NoError(t, os.WriteFile(filepath.Join(home, stored[name][0].name), []byte(row.file), 0o600))
			got, err := p.Usage(id)
			require.NoError(t, err)
			require.Equal(t, row.want, got)
			require.Empty(t, got.Since(got))
			require.Equal(t, row.want.Models, got.Since(sessions.Usage{}))
			_, err = p.Usage("another")
			require.ErrorIs(t, err, sessions.ErrNone)
		})
	}
	p, _ := program(t, "claude")
	_, err := p.Usage(id)
	require.True(t, errors.Is(err, errors.ErrUnsupported))
}
