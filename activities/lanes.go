package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/pipeline/expression"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// lanesRead is the maximum number of items in a result.
const lanesRead = 100

// ExpandLanes stores the list of a stage, and returns a part of it.
func (a *Activities) ExpandLanes(ctx context.Context, in contract.ExpandInput) (contract.ExpandResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.ExpandResult{}, err
	}
	list := contract.LaneList{Version: 1}
	if in.List == "" {
		if list.Items, err = a.laneItems(ctx, s, in); err != nil {
			return contract.ExpandResult{}, err
		}
		raw, err := json.Marshal(list)
		if err != nil {
			return contract.ExpandResult{}, err
		}
		b, err := blobs.Put(ctx, s, raw)
		if err != nil {
			return contract.ExpandResult{}, err
		}
		in.List = b.Digest
	} else if err := s.GetJSON(ctx, store.Digest(in.List), &list); err != nil {
		return contract.ExpandResult{}, err
	}
	res := contract.ExpandResult{List: in.List, Count: len(list.Items)}
	first := min(in.From, len(list.Items))
	for _, item := range list.Items[first:min(first+lanesRead, len(list.Items))] {
		item.Text = ""
		res.Items = append(res.Items, item)
	}
	return res, nil
}

// laneItems returns the items of a stage's list.
func (a *Activities) laneItems(ctx context.Context, s *store.Store,
	in contract.ExpandInput) ([]contract.LaneItem, error) {
	plan, err := a.plan(ctx, s, in.Plan)
	if err != nil {
		return nil, err
	}
	if in.Stage < 0 || in.Stage >= len(plan.Stages) || plan.Stages[in.Stage].Lanes == nil {
		return nil, badInput("read the plan: stage %d has no lanes", in.Stage+1)
	}
	lanes := plan.Stages[in.Stage].Lanes
	var texts []string
	if lanes.Source == pipeline.ItemsOfGlob {
		if in.Tree == nil {
			return nil, badInput("list the files of %s: the run has no workspace", lanes.In)
		}
		t, err := tree.Load(ctx, s, store.Digest(in.Tree.Digest))
		if err != nil {
			return nil, err
		}
		for _, e := range t.Entries {
			own := e.Mode != tree.ModeFolder && !run.Workspace{Submodules: in.Submodules}.InSubmodule(e.Path)
			if own && (pipeline.Paths{lanes.In}).Covers(e.Path, false) {
				texts = append(texts, e.Path)
			}
		}
	} else if texts, err = a.repliedItems(ctx, s, in, plan, *lanes); err != nil {
		return nil, err
	}
	if len(texts) > pipeline.MaxLanes {
		return nil, badInput("the list %s has %d items; the maximum is %d", lanes.In, len(texts), pipeline.MaxLanes)
	}
	return keyed(texts), nil
}

// repliedItems returns the items in the output of a role, or the lines of a command.
func (a *Activities) repliedItems(ctx context.Context, s *store.Store, in contract.ExpandInput, plan *pipeline.Plan,
	lanes pipeline.Lanes) ([]string, error) {
	if in.Reply == nil {
		return nil, badInput("the list %s is missing: its step has no valid reply", lanes.In)
	}
	raw, err := blobs.Get(ctx, s, in.Reply.Digest)
	if err != nil {
		return nil, err
	}
	var texts []string
	if lanes.Source == pipeline.ItemsOfCommand {
		for line := range strings.Lines(string(raw)) {
			if line = strings.TrimSpace(line); line != "" {
				texts = append(texts, line)
			}
		}
		return texts, nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, badInput("read the list %s: %v", lanes.In, err)
	}
	list, ok := expression.Lookup(value, lanes.Path).([]any)
	if !ok {
		return nil, badInput("the list %s is missing: the output of its step has none", lanes.In)
	}
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			text = expression.JSON(item)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// keyed names each item by the start of its digest. Equal items are numbered.
func keyed(texts []string) []contract.LaneItem {
	used := map[string]int{}
	items := make([]contract.LaneItem, len(texts))
	for i, text := range texts {
		key := string(store.DigestOf([]byte(text)))[:12]
		if used[key]++; used[key] > 1 {
			key = fmt.Sprintf("%s-%d", key, used[key])
		}
		items[i] = contract.LaneItem{Key: key, Name: itemName(text), Text: text}
	}
	return items
}

// itemName is the text of an item, or its name, id, path or title, in at most 80 characters.
func itemName(text string) string {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) == nil {
		for _, key := range []string{"name", "id", "path", "file", "title"} {
			if name, ok := object[key].(string); ok && name != "" {
				text = name
				break
			}
		}
	}
	name := []rune(strings.Join(strings.Fields(text), " "))
	if len(name) > 80 {
		return string(name[:79]) + "…"
	}
	return string(name)
}

// item returns the text of an item of a stored list.
func (a *Activities) item(ctx context.Context, s *store.Store, use *contract.ItemUse) (string, error) {
	if use == nil {
		return "", nil
	}
	var list contract.LaneList
	if err := s.GetJSON(ctx, store.Digest(use.List), &list); err != nil {
		return "", err
	}
	if use.Index < 0 || use.Index >= len(list.Items) {
		return "", badInput("the list %s has %d items, not %d", use.List, len(list.Items), use.Index+1)
	}
	return list.Items[use.Index].Text, nil
}

// MergeLane merges the changes of a lane, and updates the checkout. Repeating it changes nothing.
func (a *Activities) MergeLane(ctx context.Context, in contract.MergeInput) (contract.MergeResult, error) {
	defer a.keepAlive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.MergeResult{}, err
	}
	l, err := a.endedLane(ctx, s, in)
	if err != nil {
		return contract.MergeResult{}, fmt.Errorf("read lane %d: %w", in.Index+1, err)
	}
	res := contract.MergeResult{Lane: l.Lane, RunID: l.RunID, Verdict: l.Verdict, Approved: l.Approved}
	merged, conflicts, err := workspace.Merge(ctx, s, l.Base, in.Tree.Tree, l.Tree)
	if err != nil || len(conflicts) > 0 {
		res.Conflicts, res.Count = conflicts[:min(len(conflicts), workspace.MaxFiles)], len(conflicts)
		return res, err
	}
	sync := in.SyncWorkspaceInput
	before := sync.Tree.Tree
	sync.Previous, sync.DiffFrom, sync.Tree.Tree = &before, &before, merged
	sync.Message = fmt.Sprintf("%s: %s\n\nPassbook-Run: %s\nPassbook-Step: %s/%s\n", sync.Message, l.Lane.Name, in.RunID,
		in.Stage, l.Lane.Key)
	out, err := a.SyncWorkspace(ctx, sync)
	if err != nil {
		return contract.MergeResult{}, err
	}
	if res.Changes = out.Changes; res.Changes != nil {
		res.Changes.Commit = out.Commit
	}
	res.Recovered = out.Recovered
	return res, nil
}

// endedLane reads what a lane began with and left: from its directory, or from the list of the run that this one copies.
func (a *Activities) endedLane(ctx context.Context, s *store.Store,
	in contract.MergeInput) (l contract.LaneTree, err error) {
	var list contract.LaneList
	if err := s.GetJSON(ctx, store.Digest(in.List), &list); err != nil {
		return l, err
	}
	if in.Index < 0 || in.Index >= len(list.Items) {
		return l, badInput("the list %s has %d items", in.List, len(list.Items))
	}
	place := run.LanePlace{Key: list.Items[in.Index].Key, Suffix: in.Suffix}
	d := a.open(filepath.Join(in.Dir, filepath.FromSlash(place.Dir(in.Stage))))
	if in.Given != "" && !d.Has(rundir.ClaimFile) {
		given := contract.LaneTrees{}
		err := s.GetJSON(ctx, store.Digest(in.Given), &given)
		if l, there := given.Lanes[in.Index]; there || err != nil {
			return l, err
		}
	}
	if !d.Has(rundir.ClaimFile) && a.cfg.Client != nil {
		if err := a.restoreLane(ctx, in.Store, d, place.ChildRunID(in.RunID, in.StageIndex)); err != nil {
			return l, err
		}
	}
	start, state, err := d.EndedLane()
	if err != nil {
		return l, err
	}
	return contract.LaneTreeOf(start, state), nil
}

// itemVariable is the variable with the item in the environment of a call of a lane.
const itemVariable = "PASSBOOK_ITEM"

// withItem adds the item of a lane to the environment of its call.
func (a *Activities) withItem(ctx context.Context, s *store.Store, in contract.PassInput, cmd *agent.Command) error {
	if in.Item == nil {
		return nil
	}
	text, err := a.item(ctx, s, in.Item)
	cmd.ExtraEnv = map[string]string{itemVariable: strings.ReplaceAll(text, "\x00", "")}
	return err
}
