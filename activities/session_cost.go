package activities

import (
	"context"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// usedBy returns what a session has used until now; nil: its program does not record it.
func usedBy(ctx context.Context, ag pipeline.Agent, id string) *sessions.Usage {
	used, err := sessionProgram(ctx, ag).Usage(id)
	if err != nil {
		return nil
	}
	return &used
}

// spentBySession returns what a delivery has cost that ended before its program reported it: what the file of its
// session records, if that is more than what is known.
func (a *Activities) spentBySession(ctx context.Context, st *runningCall, stdout []byte, known run.Spend) run.Spend {
	ad, _ := adapter.Find(st.kind)
	if st.command() || ad.Resume == nil || known.Known == run.CostExact {
		return known
	}
	id, before := ad.Read(stdout).Session, &sessions.Usage{}
	if s := st.session; s != nil {
		before = s.Used
		if id == "" {
			id = s.ID
		}
	}
	used := usedBy(ctx, st.agent, id)
	if used == nil || before == nil {
		return known
	}
	rows := used.Since(*before)
	var sum run.Tokens
	for _, m := range rows {
		sum = run.Spend{Tokens: sum}.Plus(run.Spend{Tokens: m.Tokens}).Tokens
	}
	if sum == (run.Tokens{}) || known.Known != run.CostUnknown && sum.Sum() <= known.Tokens.Sum() {
		return known
	}
	return limitSpend(a.pricesOf(st.agent).Spend(rows))
}

// withoutCounted subtracts from an answer what its program's total of the session contains of earlier calls.
func (st *runningCall) withoutCounted(ans *calls.Answer, stdout []byte) {
	ad, _ := adapter.Find(st.kind)
	if !ad.Session || st.session == nil {
		return
	}
	counted, covers := st.session.Counted, st.session.Unknown
	if used := st.session.Used; used != nil {
		counted, covers = run.Spend{Tokens: used.Total}, 0
		if prices := ans.Read.Spend.Prices; len(prices) > 0 {
			p := prices[0]
			counted.USD = price.Of(p.Input, p.Output, p.CacheRead, p.CacheWrite).Cost(used.Total)
		}
	}
	if ans.Read.Spend.Known != run.CostExact {
		read := ad.Read(stdout)
		if _, known := read.Usage(); known != run.CostExact {
			return
		}
		covers = 0 // the tokens are known, and their price is not
	}
	ans.Read.Spend = ans.Read.Spend.Without(counted, covers)
}
