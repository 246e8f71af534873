package main

import (
	"bytes"
	"fmt"
	"go/ast"
)

// namedFault is a change that the tests must detect whatever the sample is. old stands exactly once in the function.
// test is one that detects it.
type namedFault struct{ name, file, function, old, text, test string }

// faults of Passbook: values in logs, state and reports that were once wrong without any test noticing.
var faults = []namedFault{
	{"cycle 2's page before refine is another one", "internal/projector/evidence.go", "Projector.prompt",
		"s.Before)",
		"map[bool]string{true: s.Prompt.Digest, false: s.Before}[s.Round == 2 && s.Number == 0])",
		"TestRecordedValues"},
	{"no failed validation is counted", "run/fold_work.go", "folder.countPass", "f.Passes.Invalid++", "{}",
		"TestFoldOfAPassThatEnds"},
	{"checkpoints have no failed validation", "internal/projector/checkpoint.go", "Projector.quality",
		"ValidationFailureCount: s.Passes.Invalid", "ValidationFailureCount: 0",
		"TestRecordedValues"},
	{"tokens by role are exchanged", "internal/records/state.go", "ledger.costs",
		"InputTokens: r.Tokens.Input, OutputTokens: r.Tokens.Output",
		"InputTokens: r.Tokens.Output, OutputTokens: r.Tokens.Input",
		"TestRecordedValues"},
	{"tokens by set are counted once", "internal/records/state.go", "addCost",
		"r.InputTokens += c.Tokens.Input", "r.InputTokens = c.Tokens.Input",
		"TestRecordedValues"},
	{"the cost report by role has sets", "internal/cli/report.go", "readCosts",
		"r.Role = addLine(r.Role, row.Role, row)", "r.Role = addLine(r.Role, row.Subset, row)",
		"TestCostReportTables"},
	{"the cost report by set has roles", "internal/cli/report.go", "readCosts",
		"r.Subset = addLine(r.Subset, row.Subset, row)", "r.Subset = addLine(r.Subset, row.Role, row)",
		"TestCostReportTables"},
	{"the report exchanges role and set", "internal/report/costs.go", "breakdown",
		`{"role", c.ByRole}`, `{"role", c.BySubset}`,
		"TestReportedCosts"},
	{"the cumulative cost starts again after a resume", "run/fold.go", "folder.resume",
		"f.Need = nil\n\t\tf.beginPlan()", "f.Need, f.Spent = nil, Totals{}\n\t\tf.beginPlan()",
		"TestRecordedValues"},
	{"the cumulative cost is that of one call", "internal/records/log_pass.go", "Logbook.cost",
		"Cumulative: e.After.Total()", "Cumulative: c.USD",
		"TestRecordedValues"},
	{"characters are bytes", "internal/pass/read.go", "CountChars", "utf8.RuneCountInString(s)",
		"len(s) + 0*utf8.RuneLen('a')",
		"TestCheck"},
	{"the log of passes has another number of characters", "internal/records/log_pass.go", "Logbook.summary",
		"chars = p.Artifact.Chars", "chars = int(p.Artifact.Size)",
		"TestRecordedValues"},
	{"the duration of a pass is nine times too long", "internal/records/state_pass.go", "ledger.record",
		"DurationMS: p.DurationMS", "DurationMS: 9 * p.DurationMS",
		"TestRecordedValues"},
	{"the duration of a cycle is nine times too long", "internal/records/state_pass.go", "ledger.closeCycle",
		"between(c.StartedAt, e.TS)", "9 * between(c.StartedAt, e.TS)",
		"TestRecordedValues"},
	{"no attempt waits for the one before it", "workflows/attempt.go", "pass.handleFailure",
		"time.Duration(float64(delay)*p.e.in.Options.TimeScale)", "0",
		"TestTimeScaleAppliesToWaitsOnly"},
	{"the first start has another name", "run/log_run.go", "Log.started", `FreshStart`, `ResumeRun`,
		"TestRecordedValues"},
	{"the resume has another name", "run/log_run.go", "Log.resumed", `ResumeRun`, `FreshStart`,
		"TestRecordedValues"},
	{"a start that finds a paused run has no name", "run/found.go", "FoundBy", "decision = FoundPaused",
		`decision = ""`,
		"TestFoundBy"},
	{"a start that finds a complete run has another name", "run/found.go", "FoundBy", "decision = FoundComplete",
		"decision = FoundPaused",
		"TestFoundBy"},
	{"a start that finds a failed run has another name", "run/found.go", "FoundBy",
		"decision = FailedNeedsDecision", "decision = FoundComplete",
		"TestFoundBy"},
}

// namedFaults returns the faults whose packages are chosen as mutants.
func (s *source) namedFaults() ([]*mutant, error) {
	var all []*mutant
	for _, f := range s.faults {
		for _, t := range s.targets {
			text, ok := t.text[f.file]
			if !ok {
				continue
			}
			decl := functionOf(t, s, f.file, f.function)
			if decl == nil {
				return nil, fmt.Errorf("plant fault %q: %s has no function %s", f.name, f.file, f.function)
			}
			from, to := s.offset(decl.Pos()), s.offset(decl.End())
			if n := bytes.Count(text[from:to], []byte(f.old)); n != 1 {
				return nil, fmt.Errorf("plant fault %q: %q stands %d times in %s of %s; it must stand once", f.name, f.old,
					n, f.function, f.file)
			}
			at := from + bytes.Index(text[from:to], []byte(f.old))
			all = append(all, &mutant{name: f.name, pkg: t.folder, function: f.function, kind: fault, decl: decl,
				file: f.file, line: 1 + bytes.Count(text[:at], []byte("\n")), from: at, to: at + len(f.old),
				old: f.old, text: f.text})
		}
	}
	return all, nil
}

func functionOf(t *target, s *source, file, name string) *ast.FuncDecl {
	for _, syntax := range t.pkg.Syntax {
		if s.relative(s.files.Position(syntax.Pos()).Filename) != file {
			continue
		}
		for _, d := range syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && functionName(f) == name {
				return f
			}
		}
	}
	return nil
}
