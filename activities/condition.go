package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/pipeline/expression"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Evaluate evaluates a condition over the outputs of steps. The same input always has the same result. A condition that
// cannot be evaluated is bad input, which an operator can amend.
func (a *Activities) Evaluate(ctx context.Context, in contract.EvaluateInput) (contract.EvaluateResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.EvaluateResult{}, err
	}
	plan, err := a.plan(ctx, s, in.Plan)
	if err != nil {
		return contract.EvaluateResult{}, err
	}
	e, err := expression.Parse(in.Text)
	if err != nil {
		return contract.EvaluateResult{}, badInput("%v", err)
	}
	values := map[string]any{
		expression.Approved: in.Approved, expression.Verdict: in.Verdict, expression.Score: scoreValue(in.Score),
		expression.Scores: []any{}, expression.Round: in.Round, expression.Task: in.Task,
	}
	for _, score := range in.Scores {
		values[expression.Scores] = append(values[expression.Scores].([]any), score)
	}
	for _, input := range plan.Inputs {
		values[input.Name] = inputValue(input)
	}
	for _, id := range plan.Kept {
		values[id] = nil // it may be skipped
	}
	for _, o := range in.Outputs {
		if values[o.ID], err = outputValue(ctx, s, o, textUsed(e, o.ID)); err != nil {
			return contract.EvaluateResult{}, fmt.Errorf("read the output of %s: %w", o.ID, err)
		}
	}
	holds, err := expression.Eval(in.Text, values)
	if err != nil {
		return contract.EvaluateResult{}, badInput("%v (%s)", err, readText(readValues(e, values)))
	}
	return contract.EvaluateResult{Holds: holds, Read: readValues(e, values)}, nil
}

// inputValue is the value of an input in its type.
func inputValue(in pipeline.Input) any {
	text := cmp.Or(in.Value, in.Default)
	if text == nil {
		return nil
	}
	switch in.Type {
	case pipeline.InputNumber:
		if v, err := strconv.ParseFloat(*text, 64); err == nil {
			return v
		}
	case pipeline.InputBoolean:
		return *text == "true"
	case pipeline.InputList:
		list := []any{}
		for line := range strings.Lines(*text) {
			list = append(list, strings.TrimSpace(line))
		}
		return list
	}
	return *text
}

// textUsed reports whether an expression has the whole text of an output.
func textUsed(e expression.Expression, id string) bool {
	return slices.ContainsFunc(e.Uses(), func(u expression.Use) bool {
		return u.Name() == id && (len(u.Path) == 1 || u.Path[1] == pipeline.OutputText || u.Path[1] == pipeline.OutputRole)
	})
}

// outputValue is the value of an output; with its text only if that is used.
func outputValue(ctx context.Context, s *store.Store, o run.StepOutput, withText bool) (any, error) {
	if o.Data != nil {
		raw, err := blobs.Get(ctx, s, o.Data.Digest)
		if err != nil {
			return nil, err
		}
		var v any
		return v, json.Unmarshal(raw, &v)
	}
	text := ""
	if withText && o.Text != nil {
		raw, err := blobs.Get(ctx, s, o.Text.Digest)
		if err != nil {
			return nil, err
		}
		text = string(raw)
	}
	if o.Command {
		return map[string]any{pipeline.OutputOK: o.OK, pipeline.OutputExit: o.ExitCode, pipeline.OutputText: text}, nil
	}
	v := map[string]any{pipeline.OutputRole: text, expression.Verdict: o.Verdict,
		expression.Approved: o.Approved != nil && *o.Approved, expression.Score: scoreValue(o.Score)}
	return v, nil
}

// scoreValue is a score, or a number that is neither above nor below any other: a missing score.
func scoreValue(score *float64) float64 {
	if score == nil {
		return math.NaN()
	}
	return *score
}

// maxRead is the number of characters that the journal keeps of a value that a condition has read.
const maxRead = 80

// readValues lists what an expression names, shortened.
func readValues(e expression.Expression, values map[string]any) (read []run.Value) {
	for _, u := range e.Uses() {
		value := expression.Lookup(values, u.Path)
		text, isText := value.(string)
		if n, number := value.(float64); number && math.IsNaN(n) {
			text = "none"
		} else if !isText {
			text = expression.JSON(value)
		}
		if r := []rune(run.OneLine(text)); len(r) > maxRead {
			text = string(r[:maxRead]) + "…"
		}
		read = append(read, run.Value{Name: u.String(), Text: run.OneLine(text)})
	}
	return read
}

func readText(read []run.Value) string { return run.Condition{Read: read}.Values() }
