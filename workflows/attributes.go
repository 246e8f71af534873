package workflows

import (
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// Search attributes of a run: what a list of runs can be filtered by. They follow the folded state.
var (
	attrPipeline = temporal.NewSearchAttributeKeyKeyword("PassbookPipeline")
	attrStatus   = temporal.NewSearchAttributeKeyKeyword("PassbookStatus")
	attrStage    = temporal.NewSearchAttributeKeyKeyword("PassbookStage")
	attrCost     = temporal.NewSearchAttributeKeyFloat64("PassbookCostUSD")
	attrScore    = temporal.NewSearchAttributeKeyFloat64("PassbookScore")
	attrThread   = temporal.NewSearchAttributeKeyKeyword("PassbookThread")
	attrSource   = temporal.NewSearchAttributeKeyKeyword("PassbookSource") // the run that it comes of: how its replays, forks and follow-ups are found
)

// Attributes are the search attributes that a namespace must know before a run is started: name and type.
func Attributes() map[string]enumspb.IndexedValueType {
	all := map[string]enumspb.IndexedValueType{}
	for _, k := range []temporal.SearchAttributeKey{attrPipeline, attrStatus, attrStage, attrCost, attrScore, attrThread, attrSource} {
		all[k.GetName()] = k.GetValueType()
	}
	return all
}

// FirstAttributes are those of a run that is being started.
func FirstAttributes(start run.RunStart) temporal.SearchAttributes {
	first := []temporal.SearchAttributeUpdate{attrPipeline.ValueSet(start.Pipeline), attrThread.ValueSet(start.ThreadID), attrStatus.ValueSet(string(run.Pending))}
	if from, _ := start.Origin(); from != "" {
		first = append(first, attrSource.ValueSet(from))
	}
	return temporal.NewSearchAttributes(first...)
}

// publish brings the search attributes in line with the state, when status, stage or score have changed: one event of history each time.
func (e *engine) publish(ctx workflow.Context, before run.State) error {
	s := e.j.state
	if !e.in.Options.Attributes || (s.Status == before.Status && s.Phase == before.Phase && sameScore(s.Score, before.Score)) {
		return nil
	}
	updates := []temporal.SearchAttributeUpdate{attrStatus.ValueSet(string(s.Status)), attrCost.ValueSet(s.Total())}
	if s.Phase != "" {
		updates = append(updates, attrStage.ValueSet(s.Phase))
	}
	if s.Score != nil {
		updates = append(updates, attrScore.ValueSet(*s.Score))
	}
	return workflow.UpsertTypedSearchAttributes(ctx, updates...)
}

func sameScore(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// StatusOf gives the status that a workflow shows; empty: it shows none.
func StatusOf(a temporal.SearchAttributes) run.Status {
	status, _ := a.GetKeyword(attrStatus)
	return run.Status(status)
}

// AttributesQuery names every search attribute: a server that answers it knows them all.
func AttributesQuery() string {
	var all []string
	for name, kind := range Attributes() {
		value := "'no'"
		if kind == enumspb.INDEXED_VALUE_TYPE_DOUBLE {
			value = "0"
		}
		all = append(all, name+" = "+value)
	}
	slices.Sort(all)
	return strings.Join(all, " AND ")
}
