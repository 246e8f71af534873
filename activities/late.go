package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
)

// lateFolder is where a store keeps the answers of a run that came after the ones that count, numbered from 1: late/<root>/000001. The run accounts for
// them when it makes its next call, so that none is forgotten that came when its own call had long been judged.
func lateFolder(call string) string {
	root, _, _ := strings.Cut(call, "/")
	return "late/" + root + "/"
}

// noteLate gives a late answer the next number.
func noteLate(ctx context.Context, s *store.Store, late work.Late) error {
	names, err := s.List(ctx, lateFolder(late.Call))
	if err != nil {
		return err
	}
	for late.Number = len(names) + 1; ; late.Number++ {
		raw, err := json.Marshal(late)
		if err != nil {
			return err
		}
		if won, err := s.Create(ctx, fmt.Sprintf("%s%06d", lateFolder(late.Call), late.Number), raw); won || err != nil {
			return err
		}
	}
}

// lateSince gives the late answers that the run has not accounted for.
func lateSince(ctx context.Context, s *store.Store, in work.PassInput) ([]work.Late, error) {
	names, err := s.List(ctx, lateFolder(in.Call))
	if err != nil {
		return nil, err
	}
	var out []work.Late
	for _, name := range names {
		n, err := strconv.Atoi(path.Base(name))
		if err != nil || n <= in.Late {
			continue
		}
		raw, err := s.ReadName(ctx, name)
		if errors.Is(err, store.ErrMissing) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var late work.Late
		if err := json.Unmarshal(raw, &late); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, late)
	}
	return out, nil
}
