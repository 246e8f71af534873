package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
)

// Steps executes steps and counts them.
type Steps struct{ executed atomic.Int64 }

// Do executes a step: it starts the agent, if there is one, and returns its answer.
func (s *Steps) Do(ctx context.Context, w Work, step int) (string, error) {
	if len(w.Agent) == 0 {
		s.executed.Add(1)
		return "", nil
	}
	cmd := exec.CommandContext(ctx, w.Agent[0], w.Agent[1:]...)
	var answer bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(fmt.Sprintf("Step %d.\n", step)), &answer, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("step %d: the agent: %w", step, err)
	}
	if err := read(answer.Bytes()); err != nil {
		return "", fmt.Errorf("step %d: the agent's answer: %w", step, err)
	}
	s.executed.Add(1)
	return answer.String(), nil
}

// read checks an answer, as a pipeline does.
func read(answer []byte) error {
	var is struct {
		Failed bool   `json:"is_error"`
		Result string `json:"result"`
	}
	if err := json.Unmarshal(answer, &is); err != nil {
		return err
	}
	if is.Failed || is.Result == "" {
		return fmt.Errorf("it has no result: %.100q", answer)
	}
	return nil
}
