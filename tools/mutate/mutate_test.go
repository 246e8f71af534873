package main

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const sampleCode = `package sample

import "strconv"

type Box struct{ Wide, High int }

type Status string

const (
	Closed Status = "closed"
	Open   Status = "open"
)

func (Box) Kind(string) Status { return Open }

func (b *Box) Grow(by ...int) {
	for _, n := range by {
		b.Wide += n
	}
}

func Largest[T int | string](_ bool, all ...T) (out T) {
	for _, one := range all {
		if one > out {
			out = one
		}
	}
	return out
}

func Untested(n int) bool { return n == 3 }

func Unchecked(n int) bool { return n < 3 }

func Sign(n int) int {
	switch {
	case n > 99:
		return 7
	default:
		n--
	}
	return n
}

func Below(text string) bool {
	n, _ := strconv.ParseFloat(text, 64)
	return n == -1
}
`

const sampleTest = `package sample

import "testing"

func TestKind(t *testing.T) {
	if (Box{}).Kind("") != Open {
		t.Fatal()
	}
}

func TestGrow(t *testing.T) {
	b := Box{High: 1}
	b.Grow(1, 2)
	if b.Wide != 3 {
		t.Fatal(b)
	}
}

func TestLargest(t *testing.T) {
	if Largest(true, 1, 3, 2) != 3 {
		t.Fatal()
	}
}

func TestUnchecked(t *testing.T) { Unchecked(1) }

func TestSign(t *testing.T) {
	if Sign(2) != 1 {
		t.Fatal()
	}
}
`

// sample writes a module with known gaps in its tests.
func sample(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, text := range map[string]string{
		"go.mod": "module example.org/sample\n\ngo 1.26\n", "box/box.go": sampleCode, "box/box_test.go": sampleTest,
		"equivalent.txt": "box | Largest | > => >=\tthe same value replaces itself\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o644))
	}
	return root
}

func mutateSample(t *testing.T, root string, faults []namedFault, o options) (string, error) {
	t.Helper()
	t.Setenv("GOWORK", "off")
	o.workers, o.slowest, o.work = 2, cmp.Or(o.slowest, time.Minute), t.TempDir()
	code, err := load(t.Context(), root, []target{{folder: "box", tests: []string{"box"}}}, o)
	require.NoError(t, err)
	code.equivalent, code.faults = "equivalent.txt", faults
	var out bytes.Buffer
	err = mutate(t.Context(), &out, code, o)
	return out.String(), err
}

// Each gap of the tests is reported with its place, and nothing else is. A kill rate that is too low is an error.
func TestGapsAreReported(t *testing.T) {
	out, err := mutateSample(t, sample(t), nil, options{number: 1000, rate: 99})
	require.ErrorIs(t, err, errMissed)
	var gaps []string
	for line := range strings.Lines(out) {
		if what, key, ok := strings.Cut(line, ": box/box.go:"); ok {
			gaps = append(gaps, what+" "+strings.TrimSpace(key))
		}
	}
	require.ElementsMatch(t, []string{
		"unreached 31 operator | Untested | == => !=",
		"unreached 31 constant | Untested | 3 => 4",
		"survived 33 operator | Unchecked | < => <=",
		"survived 33 operator | Unchecked | < => >=",
		"survived 33 constant | Unchecked | 3 => 4",
		"survived 37 operator | Sign | > => >=",
		"survived 37 constant | Sign | 99 => 100",
		"unreached 38 constant | Sign | 7 => 8",
		"unreached 47 operator | Below | == => !=",
		"unreached 47 constant | Below | 1 => 0",
	}, gaps, out)
	require.Contains(t, strings.Join(strings.Fields(out), " "), "all 17 6 5 5 0 1 37.5%")
}

// A mutant whose tests are left out is neither detected nor a gap.
func TestMutantsWithoutTheirTestsDoNotCount(t *testing.T) {
	out, err := mutateSample(t, sample(t), nil, options{number: 1000, slowest: 1})
	require.NoError(t, err)
	require.Contains(t, out, "undecided: box/box.go:33")
	require.Contains(t, strings.Join(strings.Fields(out), " "), "all 17 0 0 5 11 1 0.0%")
}

// A named fault that no test detects is an error, and so is one whose text is not in the code.
func TestUndetectedNamedFaultsFail(t *testing.T) {
	missed := namedFault{"wrong limit", "box/box.go", "Unchecked", "n < 3", "n < 2"}
	caught := namedFault{"no growth", "box/box.go", "Box.Grow", "+= n", "+= 2 * n"}
	out, err := mutateSample(t, sample(t), []namedFault{caught, missed}, options{plant: "x"})
	require.ErrorIs(t, err, errMissed)
	require.ErrorContains(t, err, missed.name)
	require.NotContains(t, err.Error(), caught.name)
	require.Contains(t, out, "fault no growth: killed box TestGrow")
	missed.old = "n > 9"
	_, err = mutateSample(t, sample(t), []namedFault{missed}, options{plant: "x"})
	require.ErrorContains(t, err, `"n > 9" stands 0 times in Unchecked of box/box.go`)
}

func TestPlantedFaultsOfFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "faults.txt")
	text := "# comment\n\none\ta/b.go\tT.f\told\tx\\n\\ty\ntwo\ta/c.go\tg\told\tnew\td,e\nthree\tf/g.go\th\told\tnew\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	all, err := readPlanted(file)
	require.NoError(t, err)
	targets, faults := planted(all)
	require.Equal(t, []target{{folder: "a", tests: []string{"a", "d", "e"}}, {folder: "f", tests: []string{"f"}}}, targets)
	require.Equal(t, namedFault{name: "one", file: "a/b.go", function: "T.f", old: "old", text: "x\n\ty"}, faults[0])
	require.Len(t, faults, 3)
	require.NoError(t, os.WriteFile(file, []byte("one\ttwo\n"), 0o600))
	_, err = readPlanted(file)
	require.ErrorContains(t, err, "faults.txt:1: write NAME")
}
