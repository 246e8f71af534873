package rundir

import (
	"encoding/json"

	"github.com/passbook-run/passbook/run"
)

// Rows reads a JSONL file of the directory. It skips and counts lines that do not fit T.
func Rows[T any](d Dir, file string) (rows []T, skipped int, err error) {
	raw, err := d.ReadFile(file)
	if err != nil {
		return nil, 0, err
	}
	s := Split(raw, 0)
	if len(s.Torn) > 0 {
		skipped++
	}
	for _, line := range s.Lines {
		var row T
		if json.Unmarshal([]byte(line), &row) != nil {
			skipped++
			continue
		}
		rows = append(rows, row)
	}
	return rows, skipped, nil
}

// ErrorRow is a line of logs/errors.jsonl: an [ErrorRecord] with the key "ts" that all logs have.
type ErrorRow struct {
	Timestamp          string       `json:"ts"`
	Context            string       `json:"context"`
	Category           run.Category `json:"category"`
	Message            string       `json:"message"`
	Recovered          bool         `json:"recovered"`
	RecoveredAtAttempt *int         `json:"recoveredAtAttempt"`
	Diagnostics        string       `json:"diagnostics"`
}

// TraceRow is a line of traces.jsonl: one call, by reference.
type TraceRow struct {
	Seq        int64        `json:"seq"`
	TS         string       `json:"ts"`
	Call       string       `json:"call"`
	Turn       int          `json:"turn"`
	Step       string       `json:"step"`
	Role       string       `json:"role"`
	PromptPath string       `json:"prompt_path"`
	ReplyPath  string       `json:"reply_path,omitempty"`
	AgentPath  string       `json:"agent_path,omitempty"` // what the agent reported beside it
	Reply      string       `json:"reply,omitempty"`      // digest of its text
	Outcome    run.Category `json:"outcome"`
	DurationMS int64        `json:"duration_ms"`
	Reused     bool         `json:"reused,omitempty"`
	Joined     bool         `json:"joined,omitempty"`
}

// ToolRow is another line of traces.jsonl: one tool call within a call. It follows the row of the call.
type ToolRow struct {
	Seq         int64  `json:"seq"`
	TS          string `json:"ts"`
	Call        string `json:"call"`
	Turn        int    `json:"turn"`
	Step        string `json:"step"`
	Role        string `json:"role"`
	Tool        string `json:"tool"`
	Input       string `json:"input,omitempty"` // shortened
	InputDigest string `json:"input_digest"`    // SHA-256 of the whole input
	State       string `json:"state"`           // ok, failed, or started
}

// ReadTraces parses the rows of calls in a traces.jsonl. It skips and counts lines that are not rows.
func ReadTraces(raw []byte) (rows []TraceRow, skipped int) {
	s := Split(raw, 0)
	if len(s.Torn) > 0 {
		skipped++
	}
	for _, line := range s.Lines {
		var row struct {
			TraceRow
			Tool string `json:"tool"`
		}
		if json.Unmarshal([]byte(line), &row) != nil || row.Call == "" {
			skipped++
			continue
		}
		if row.Tool == "" {
			rows = append(rows, row.TraceRow)
		}
	}
	return rows, skipped
}

// DecisionRow contains the fields of a line of decisions.jsonl that tools use.
type DecisionRow struct {
	TS       string `json:"ts"`
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
	ID       string `json:"id,omitempty"`
	By       string `json:"by,omitempty"`
	Seq      int64  `json:"seq"`
}

// CostRow is a line of cost.jsonl.
type CostRow struct {
	TS         string  `json:"ts"`
	Pass       int     `json:"pass,omitempty"`
	PACycle    int     `json:"paCycle,omitempty"`
	Role       string  `json:"role"`
	Subset     string  `json:"subset,omitempty"`
	Model      string  `json:"model"`
	Input      int64   `json:"inputTokens"`
	Output     int64   `json:"outputTokens"`
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	USD        float64 `json:"costUsd"`
	Cumulative float64 `json:"cumulativeCostUsd"`
	Estimated  bool    `json:"estimated,omitempty"`
	Known      string  `json:"costKnown,omitempty"` // exact, at_least or unknown
	// earlier calls without a known cost, whose cost is part of this one
	Covers int   `json:"coversCalls,omitempty"`
	Seq    int64 `json:"seq"`
}

// QualityRow is a line of quality.jsonl. The fields in use depend on its type.
type QualityRow struct {
	TS        string         `json:"ts"`
	Type      string         `json:"type"`
	Pass      int            `json:"pass,omitempty"`
	PACycle   int            `json:"paCycle,omitempty"`
	Result    string         `json:"result,omitempty"`
	Checks    int            `json:"checks,omitempty"`
	Warnings  int            `json:"warnings,omitempty"`
	Score     *float64       `json:"score,omitempty"`
	Threshold *float64       `json:"threshold,omitempty"`
	Subset    string         `json:"subset,omitempty"`
	Rotation  string         `json:"rotation,omitempty"`
	Counts    map[string]int `json:"-"` // of verifier-depth: whatever the pipeline tallies
}

// UnmarshalJSON keeps the tallied counts, whose names are the pipeline's.
func (r *QualityRow) UnmarshalJSON(raw []byte) error {
	type plain QualityRow
	if err := json.Unmarshal(raw, (*plain)(r)); err != nil {
		return err
	}
	if r.Type != "verifier-depth" {
		return nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	r.Counts = map[string]int{}
	for name, v := range all {
		var n int
		if name != "pass" && name != "seq" && json.Unmarshal(v, &n) == nil && string(v) != "null" {
			r.Counts[name] = n
		}
	}
	return nil
}
