//go:build !linux

package process

// Carrying gives nothing: environments cannot be looked at here.
func Carrying(_, _ string) ([]Identity, error) { return nil, nil }
