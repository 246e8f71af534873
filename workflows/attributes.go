package workflows

import (
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Search attributes of a run. They follow the folded state.
var (
	attrPipeline = temporal.NewSearchAttributeKeyKeyword("PassbookPipeline")
	attrStatus   = temporal.NewSearchAttributeKeyKeyword("PassbookStatus")
	// the status in the words of RFC-0002
	attrRFCStatus = temporal.NewSearchAttributeKeyKeyword("PassbookRFCStatus")
	attrStage     = temporal.NewSearchAttributeKeyKeyword("PassbookStage")
	attrCost      = temporal.NewSearchAttributeKeyFloat64("PassbookCostUSD")
	attrScore     = temporal.NewSearchAttributeKeyFloat64("PassbookScore")
	attrThread    = temporal.NewSearchAttributeKeyKeyword("PassbookThread")
	// the run that this one replays, forks or follows up
	attrSource = temporal.NewSearchAttributeKeyKeyword("PassbookSource")
)

// SearchAttributes returns name and type of each search attribute that a namespace needs before a run starts.
func SearchAttributes() map[string]enumspb.IndexedValueType {
	all := map[string]enumspb.IndexedValueType{}
	for _, k := range []temporal.SearchAttributeKey{
		attrPipeline, attrStatus, attrRFCStatus, attrStage, attrCost, attrScore, attrThread, attrSource,
	} {
		all[k.GetName()] = k.GetValueType()
	}
	return all
}

// InitialSearchAttributes returns the search attributes of a new run.
func InitialSearchAttributes(in contract.Input) temporal.SearchAttributes {
	first := append(shown(in.Options, run.Pending),
		attrPipeline.ValueSet(in.Start.Pipeline), attrThread.ValueSet(in.Start.ThreadID))
	if from, _ := in.Start.Origin(); from != "" {
		first = append(first, attrSource.ValueSet(from))
	}
	return temporal.NewSearchAttributes(first...)
}

// shown are the search attributes of a status.
func shown(o contract.Options, s run.Status) []temporal.SearchAttributeUpdate {
	all := []temporal.SearchAttributeUpdate{attrStatus.ValueSet(string(s))}
	if o.RFCStatus {
		all = append(all, attrRFCStatus.ValueSet(s.RFC()))
	}
	return all
}

func sameScore(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

// StatusFromAttributes returns the status in the search attributes of a workflow, or "" if they contain none.
func StatusFromAttributes(a temporal.SearchAttributes) run.Status {
	status, _ := a.GetKeyword(attrStatus)
	return run.Status(status)
}

// SearchAttributesQuery returns a query that names every search attribute: a server that accepts it knows all of
// them.
func SearchAttributesQuery() string {
	var all []string
	for name, kind := range SearchAttributes() {
		value := "'no'"
		if kind == enumspb.INDEXED_VALUE_TYPE_DOUBLE {
			value = "0"
		}
		all = append(all, name+" = "+value)
	}
	slices.Sort(all)
	return strings.Join(all, " AND ")
}
