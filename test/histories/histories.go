// Package histories replays histories of Passbook's workflows for tests, and lists what occurs in them.
//
// A history is stored as `temporal workflow show -o json` prints it, compressed with gzip.
package histories

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
)

// Suffix is the end of the names of stored histories.
const Suffix = ".json.gz"

// Read reads a stored history.
func Read(path string) (*historypb.History, error) {
	compressed, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	z, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("read history %s: %w", path, err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("read history %s: %w", path, err)
	}
	h, err := client.HistoryFromJSON(bytes.NewReader(text), client.HistoryJSONOptions{})
	if err != nil {
		return nil, fmt.Errorf("read history %s: %w", path, err)
	}
	return h, nil
}

// Write stores a history in a folder, which it creates. name has no suffix.
func Write(folder, name string, h *historypb.History) error {
	text, err := temporalproto.CustomJSONMarshalOptions{Indent: "  "}.Marshal(h)
	if err != nil {
		return fmt.Errorf("write history %s: %w", name, err)
	}
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	if _, err := z.Write(text); err != nil {
		return fmt.Errorf("write history %s: %w", name, err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write history %s: %w", name, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("write history %s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(folder, name+Suffix), compressed.Bytes(), 0o644)
}

// Fetch reads the history of one execution from a server.
func Fetch(ctx context.Context, c client.Client, workflowID, runID string) (*historypb.History, error) {
	h := &historypb.History{}
	events := c.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("fetch history of %s: %w", workflowID, err)
		}
		h.Events = append(h.Events, e)
	}
	return h, nil
}

// resetRunID is the run id of an execution that continues another one after a reset; empty if no reset made it.
func resetRunID(h *historypb.History) (id string) {
	for _, e := range h.Events {
		if at := e.GetWorkflowTaskFailedEventAttributes(); at.GetNewRunId() != "" {
			id = at.NewRunId
		}
	}
	return id
}
