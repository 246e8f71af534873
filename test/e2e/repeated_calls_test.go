package e2e_test

import (
	"fmt"
	"path/filepath"
)

// spent is what the agents' own log has of the calls of a run.
type spent struct {
	started, answered int
	repeated          int      // starts of a call that had its answer, and answers of one that had another
	again             int      // starts of a call whose agent had ended without an answer
	repeats           []string // the former, one text each
}

// judge counts. A call is a place in the run, whatever attempt and delivery it is: a fault-free run asks each place
// once.
func judge(calls []callLine) spent {
	s, starts, answers, after := spent{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, c := range calls {
		switch {
		case c.Event == "answered":
			answers[c.At]++
		case answers[c.At] > 0:
			after[c.At]++
			starts[c.At]++
			s.repeats = append(s.repeats, fmt.Sprintf("%s was answered, and started again as %s", c.At, delivery(c)))
		default:
			starts[c.At]++
		}
	}
	for at, n := range starts {
		repeated := max(after[at], answers[at]-1)
		s.started, s.answered, s.repeated, s.again = s.started+n, s.answered+answers[at], s.repeated+repeated,
			s.again+n-1-repeated
		if after[at] < repeated {
			s.repeats = append(s.repeats, fmt.Sprintf("%s was answered %d times", at, answers[at]))
		}
	}
	return s
}

// delivery names a call and its delivery, by the directory that the agent worked in.
func delivery(c callLine) string {
	dir := filepath.Dir(c.Dir)
	return filepath.Base(filepath.Dir(dir)) + ", delivery " + filepath.Base(dir)
}
