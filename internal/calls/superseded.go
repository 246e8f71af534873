package calls

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/workflows/contract"
)

// lateFolder is where a store keeps the superseded answers of a run, numbered from 1: late/<root>/000001. The run
// accounts for them when it makes its next call, also when their own calls were judged long before.
func lateFolder(call string) string {
	root, _, _ := strings.Cut(call, "/")
	return "late/" + root + "/"
}

// noteLate stores a superseded answer under the next number; a delivery that ended without one, once.
func noteLate(ctx context.Context, s *store.Store, late contract.SupersededResult) error {
	names, err := s.List(ctx, lateFolder(late.Call))
	if err != nil {
		return err
	}
	for _, name := range names {
		other, err := Read[contract.SupersededResult](ctx, s, name)
		if err != nil {
			return err
		}
		if late.Ended > 0 && other != nil && other.Call == late.Call && other.Ended == late.Ended {
			return nil
		}
	}
	for late.Number = len(names) + 1; ; late.Number++ {
		if won, err := Create(ctx, s, fmt.Sprintf("%s%06d", lateFolder(late.Call), late.Number), late); won || err != nil {
			return err
		}
	}
}

// SupersededSince returns the superseded answers that the run has not accounted for.
func SupersededSince(ctx context.Context, s *store.Store, in contract.PassInput) ([]contract.SupersededResult, error) {
	names, err := s.List(ctx, lateFolder(in.Call))
	if err != nil {
		return nil, err
	}
	var out []contract.SupersededResult
	for _, name := range names {
		n, err := strconv.Atoi(path.Base(name))
		if err != nil || n <= in.SupersededSeen {
			continue
		}
		late, err := Read[contract.SupersededResult](ctx, s, name)
		if err != nil {
			return nil, err
		}
		if late != nil && !slices.ContainsFunc(out, late.SameEnd) {
			out = append(out, *late)
		}
	}
	return out, nil
}
