package calls

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/store"
)

// Parts splits the id of a call: <run>/g0.035.1.-.1.<question> is generation, step with round and member, try, and the
// digest of the question. A step's key may contain slashes.
func Parts(id string) (step, question string, ok bool) {
	_, rest, _ := strings.Cut(id, "/")
	part := strings.Split(rest, ".")
	if len(part) < 6 {
		return "", "", false
	}
	n := len(part)
	return strings.Join(part[1:n-2], "."), part[n-1], true
}

// answered lists the calls with an answer to one question of a step, in a generation of a run, by try.
func answered(ctx context.Context, s *store.Store, runID, generation, step, question string) (ids []string, err error) {
	names, err := s.List(ctx, "calls/"+runID+"/"+generation+"."+step+".")
	slices.SortFunc(names, byTry)
	for _, name := range names {
		call, is := strings.CutSuffix(strings.TrimPrefix(name, "calls/"), "/result")
		if of, q, ok := Parts(call); is && ok && q == question && of == step {
			ids = append(ids, call)
		}
	}
	return ids, err
}

// AnswersOf returns the answers of another run to the question of a call, in one generation, by try.
func (l Ledger) AnswersOf(ctx context.Context, runID string, generation int) (all []*Answer, err error) {
	step, question, _ := Parts(l.Call)
	ids, err := answered(ctx, l.Store, runID, fmt.Sprintf("g%d", generation), step, question)
	for _, id := range ids {
		ans, err := Ledger{Store: l.Store, Call: id}.Result(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, ans)
	}
	return all, err
}

// EarlierTry returns the answer of the newest earlier try of the same question, or nil.
func (l Ledger) EarlierTry(ctx context.Context) (*Answer, error) {
	step, question, ok := Parts(l.Call)
	if _, try := tryOf(l.Call); !ok || try < 2 {
		return nil, nil
	}
	root, rest, _ := strings.Cut(l.Call, "/")
	generation, _, _ := strings.Cut(rest, ".")
	ids, err := answered(ctx, l.Store, root, generation, step, question)
	for _, id := range slices.Backward(ids) {
		if byTry(id, l.Call) < 0 {
			return Ledger{Store: l.Store, Call: id}.Result(ctx)
		}
	}
	return nil, err
}

// byTry orders result names of one question by redo, then try, as numbers.
func byTry(a, b string) int {
	redoA, tryA := tryOf(a)
	redoB, tryB := tryOf(b)
	return cmp.Or(cmp.Compare(redoA, redoB), cmp.Compare(tryA, tryB), cmp.Compare(a, b))
}

// tryOf returns redo and try of a call, as in calls/<run>/g0.035.1.-.r2-10.<question>/result.
func tryOf(name string) (redo, try int) {
	part := strings.Split(strings.TrimSuffix(name, "/result"), ".")
	if len(part) < 2 {
		return 0, 0
	}
	text := part[len(part)-2]
	if again, ok := strings.CutPrefix(text, "r"); ok {
		var number string
		number, text, _ = strings.Cut(again, "-")
		redo, _ = strconv.Atoi(number) // a non-number is not from a call of this program: it comes first
	}
	try, _ = strconv.Atoi(text)
	return redo, try
}
