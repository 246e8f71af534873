// Command peer is a worker of the plain Temporal SDK: one workflow with one activity for each step, as test/bench
// compares it with Passbook. The server is that of TEMPORAL_ADDRESS and the other variables of the SDK.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// heartbeat is how long a worker may be silent before it is lost, as in Passbook.
const heartbeat = 10 * time.Second

// job has the fields of the work of test/bench.
type job struct {
	Steps int
	Agent []string
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return err
	}
	c, err := client.Dial(options)
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, "peer", worker.Options{})
	w.RegisterWorkflowWithOptions(work, workflow.RegisterOptions{Name: "work"})
	w.RegisterActivityWithOptions(step, activity.RegisterOptions{Name: "step"})
	return w.Run(worker.InterruptCh())
}

func work(ctx workflow.Context, j job) (answers int, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Hour,
		HeartbeatTimeout: heartbeat})
	for i := 1; i <= j.Steps; i++ {
		var answer string
		if err := workflow.ExecuteActivity(ctx, "step", j.Agent, i).Get(ctx, &answer); err != nil {
			return answers, err
		}
		if answer != "" || len(j.Agent) == 0 {
			answers++
		}
	}
	return answers, nil
}

// step starts the agent, if there is one, sends heartbeats while it works, and returns its answer.
func step(ctx context.Context, agent []string, n int) (string, error) {
	if len(agent) == 0 {
		return "", nil
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		beats := time.NewTicker(heartbeat / 4)
		defer beats.Stop()
		for {
			select {
			case <-beats.C:
				activity.RecordHeartbeat(ctx)
			case <-ended:
				return
			}
		}
	}()
	cmd := exec.CommandContext(ctx, agent[0], agent[1:]...)
	var answer bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(fmt.Sprintf("Step %d.\n", n)), &answer, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("step %d: the agent: %w", n, err)
	}
	var is struct{ Result string }
	if err := json.Unmarshal(answer.Bytes(), &is); err != nil || is.Result == "" {
		return "", fmt.Errorf("step %d: the agent's answer has no result: %w", n, err)
	}
	return answer.String(), nil
}
