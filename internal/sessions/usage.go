package sessions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/run"
)

// Usage is what the requests of a session used, as its file records it. A call that is killed reports nothing itself.
type Usage struct {
	Models []adapter.ModelUsage `json:"models,omitempty"`
	// of codex: the total from which it counts when it continues the session. It lacks a request that was interrupted.
	Total run.Tokens `json:"total,omitzero"`
}

// Usage reads what the requests of a session used. It is unsupported for claude, which reports it for each request.
func (p Program) Usage(id string) (u Usage, err error) {
	read := map[string]func([]byte) Usage{"codex": codexUsage, "gemini": geminiUsage}[p.Name]
	if read == nil {
		return u, fmt.Errorf("read the usage of a session of %s: %w", p.Name, errors.ErrUnsupported)
	}
	root, err := p.open()
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	data, err := p.read(root, id)
	if err != nil {
		return u, err
	}
	return read(data), nil
}

// Since returns what was used after an earlier state of the session.
func (u Usage) Since(before Usage) []adapter.ModelUsage {
	var out []adapter.ModelUsage
	for _, m := range u.Models {
		at := slices.IndexFunc(before.Models, func(b adapter.ModelUsage) bool { return b.Model == m.Model })
		if at >= 0 {
			m.Tokens = run.Spend{Tokens: m.Tokens}.Without(run.Spend{Tokens: before.Models[at].Tokens}, 0).Tokens
		}
		if m.Tokens != (run.Tokens{}) {
			out = append(out, m)
		}
	}
	return out
}

// add adds the tokens of a request to those of its model. An agent may have written the file: less than nothing is nothing.
func (u *Usage) add(model string, t run.Tokens) {
	at := slices.IndexFunc(u.Models, func(m adapter.ModelUsage) bool { return m.Model == model })
	if at < 0 {
		at, u.Models = len(u.Models), append(u.Models, adapter.ModelUsage{Model: model})
	}
	m := &u.Models[at].Tokens
	m.Input, m.Output = m.Input+max(0, t.Input), m.Output+max(0, t.Output)
	m.CacheRead, m.CacheWrite = m.CacheRead+max(0, t.CacheRead), m.CacheWrite+max(0, t.CacheWrite)
}

// codexTokens are tokens as codex stores them: the input includes the cache.
type codexTokens struct {
	Input      int64 `json:"input_tokens"`
	CacheRead  int64 `json:"cached_input_tokens"`
	CacheWrite int64 `json:"cache_write_input_tokens"`
	Output     int64 `json:"output_tokens"`
}

func (c codexTokens) tokens() run.Tokens {
	return run.Tokens{Input: max(0, c.Input-c.CacheRead-c.CacheWrite), Output: c.Output, CacheRead: c.CacheRead,
		CacheWrite: c.CacheWrite}
}

// codexSum adds what the requests of a session used.
type codexSum struct {
	Usage
	model string
}

// codexUsage reads the records of each request, and the last total.
func codexUsage(data []byte) Usage {
	var sum codexSum
	for line := range bytes.Lines(data) {
		sum.add(line)
	}
	return sum.Usage
}

func (s *codexSum) add(line []byte) {
	var row struct {
		Type    string
		Payload struct {
			Type  string
			Model string
			Usage *codexTokens
			Info  *struct {
				Total *codexTokens `json:"total_token_usage"`
			}
		}
	}
	if !bytes.Contains(line, []byte("token")) && !bytes.Contains(line, []byte("turn_context")) ||
		json.Unmarshal(line, &row) != nil {
		return
	}
	switch p := row.Payload; {
	case row.Type == "turn_context" && p.Model != "":
		s.model = p.Model
	case row.Type == "token_usage_record" && p.Usage != nil:
		s.Usage.add(s.model, p.Usage.tokens())
	case p.Type == "token_count" && p.Info != nil && p.Info.Total != nil:
		s.Total = p.Info.Total.tokens()
	}
}

// geminiUsage reads the tokens of each message of the model. A later line replaces a message of the same id.
func geminiUsage(data []byte) (u Usage) {
	type message struct {
		ID     string
		Type   string
		Model  string
		Tokens *struct{ Input, Output, Cached, Thoughts, Tool int64 }
	}
	messages, order := map[string]message{}, []string{}
	for line := range bytes.Lines(data) {
		var row struct {
			message
			Set struct{ Messages []message } `json:"$set"`
		}
		if !bytes.Contains(line, []byte(`"tokens"`)) || json.Unmarshal(line, &row) != nil {
			continue
		}
		for _, m := range append(row.Set.Messages, row.message) {
			if m.Type != "gemini" || m.Tokens == nil {
				continue
			}
			if _, known := messages[m.ID]; !known {
				order = append(order, m.ID)
			}
			messages[m.ID] = m
		}
	}
	for _, id := range order {
		t := messages[id].Tokens
		u.add(messages[id].Model, run.Tokens{Input: max(0, t.Input-t.Cached) + t.Tool, Output: t.Output + t.Thoughts,
			CacheRead: t.Cached})
	}
	return u
}
