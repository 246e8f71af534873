package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
)

// Rules define what does not belong to a tree, in addition to .git. The zero value excludes what looks like a
// secret, and rejects symlinks that point outside.
type Rules struct {
	Ignore         []string            // .gitignore patterns relative to the root; the last match counts
	Paths          []string            // files that are also excluded, unless Ignore includes them
	Git            *Ignores            // also excluded, unless Ignore includes it or it is tracked
	Tracked        []string            // files that are neither secrets nor ignored by git, whatever their names
	IncludeSecrets bool                // include what looks like a secret
	SkipOutside    bool                // skip and report symlinks that point outside instead of failing
	Portable       bool                // also exclude untracked names that other systems refuse: control characters, twins but for case
	Limits         pipeline.TreeLimits // of what is saved; zero: no limit
}

// Reason is why something was left out.
type Reason string

const (
	ReasonGit     Reason = "git"     // git's own
	ReasonIgnored Reason = "ignored" // by a pattern or a path
	ReasonSecret  Reason = "secret"  // its name looks like that of a secret
	ReasonOutside Reason = "outside" // a symlink that points out of the tree
	ReasonSpecial Reason = "special" // a socket, device or pipe
	ReasonName    Reason = "name"    // git or another system refuses its name
)

// secrets are ignore patterns for files in which programs store secrets.
var secrets = []string{
	".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template", "!.env.dist", ".envrc",
	"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", ".ssh/",
	"credentials", "credentials.json", "credentials.yml", "credentials.yaml", "credentials.toml", "credentials.ini",
	"credentials.csv", "credentials.xml", "credentials.db",
	"*.credentials", ".credentials*", "client_secret*.json", "service-account*.json", "service_account*.json",
	".npmrc", ".pypirc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg",
	".docker/config.json",
	".aws/", ".azure/", ".gnupg/", ".kube/config", "*.tfstate", "*.tfstate.backup", ".vault-token",
}

// sieve is a compiled form of Rules. A folder that it excludes is not read.
type sieve struct {
	rules           Rules
	ignore, secrets []pattern
	git             gitPatterns
	paths           map[string]bool
	tracked         map[string]bool
	folders         map[string]led // with tracked files
	opened          led            // what is true of any of them
}

// led is a folder that is read only for its tracked files.
type led struct{ secret, ignored bool }

// track adds the paths of trees to the tracked ones.
func (r *Rules) track(trees []Tree) {
	r.Tracked = slices.Clip(r.Tracked)
	for _, t := range trees {
		for _, e := range t.Entries {
			r.Tracked = append(r.Tracked, e.Path)
		}
	}
}

func (r Rules) compile() (sieve, error) {
	ignore, err := parsePatterns(r.Ignore)
	if err != nil {
		return sieve{}, err
	}
	s := sieve{rules: r, ignore: ignore, git: r.Git.compile(), paths: setOf(r.Paths)}
	if !r.IncludeSecrets {
		s.secrets, err = parsePatterns(secrets)
	}
	s.track(r.Tracked)
	return s, err
}

func setOf(paths []string) map[string]bool {
	set := make(map[string]bool, len(paths))
	for _, p := range paths {
		set[p] = true
	}
	return set
}

// track records the tracked files and their parent folders, which must be read.
func (s *sieve) track(files []string) {
	s.tracked, s.folders = setOf(files), map[string]led{}
	for _, file := range files {
		for dir := parent(file); dir != "."; dir = parent(dir) {
			if _, seen := s.folders[dir]; seen {
				break
			}
			f := led{secret: matches(s.secrets, dir, true), ignored: s.git.ignores(dir, true)}
			s.folders[dir] = f
			s.opened = led{secret: s.opened.secret || f.secret, ignored: s.opened.ignored || f.ignored}
		}
	}
}

// ignored reports whether a pattern or a listed path excludes a path.
func (s sieve) ignored(path string, folder bool) bool {
	if last, ok := lastFit(s.ignore, path, folder); ok {
		return !last.include
	}
	return !folder && s.paths[path] || s.ignoredByGit(path, folder)
}

// ignoredByGit reports whether git ignores a path, or a folder above it that is read only for its tracked files.
func (s sieve) ignoredByGit(path string, folder bool) bool {
	if _, leads := s.folders[path]; s.rules.Git == nil || s.tracked[path] || folder && leads {
		return false
	}
	return s.git.ignores(path, folder) ||
		s.opened.ignored && below(path, func(dir string) bool { return s.folders[dir].ignored })
}

// secret reports whether a path looks like a secret by its name, or by that of a folder that is read only for its
// tracked files.
func (s sieve) secret(path string, folder bool) bool {
	if _, leads := s.folders[path]; s.tracked[path] || folder && leads {
		return false
	}
	return matches(s.secrets, path, folder) ||
		s.opened.secret && below(path, func(dir string) bool { return s.folders[dir].secret })
}

// below reports whether is holds for a parent folder of a path.
func below(path string, is func(dir string) bool) bool {
	for dir := parent(path); dir != "."; dir = parent(dir) {
		if is(dir) {
			return true
		}
	}
	return false
}

// known reports whether a path is tracked, or a folder with tracked files.
func (s sieve) known(path string) bool {
	_, leads := s.folders[path]
	return leads || s.tracked[path]
}

// spellings are the names of a folder that belong to the tree, by what a system compares that ignores case.
type spellings map[string]string

// spellings begins with the known names: they are not left out because of others. It is nil if names are not compared.
func (s sieve) spellings(dir string, inside []fs.FileInfo) spellings {
	if !s.rules.Portable {
		return nil
	}
	all := make(spellings, len(inside))
	for _, info := range inside {
		if s.known(join(dir, info.Name())) {
			all[fold(info.Name())] = info.Name()
		}
	}
	return all
}

// out returns why a path below root is excluded, or "". Its parent folders are not checked. Of names that differ only in
// case, the known ones belong to the tree, or else the first that is passed.
func (s sieve) out(root *os.Root, path string, info fs.FileInfo, of spellings) (Reason, error) {
	reason, err := s.outAlone(root, path, info)
	if reason != "" || err != nil || of == nil || s.known(path) {
		return reason, err
	}
	name := base(path)
	if _, twin := of[fold(name)]; twin || hasControls(name) {
		return ReasonName, nil
	}
	of[fold(name)] = name
	return "", nil
}

// outAlone is out without a comparison of names.
func (s sieve) outAlone(root *os.Root, path string, info fs.FileInfo) (Reason, error) {
	kind := info.Mode().Type()
	switch {
	case isGit(base(path)):
		return ReasonGit, nil
	case s.ignored(path, info.IsDir()):
		return ReasonIgnored, nil
	case s.secret(path, info.IsDir()):
		return ReasonSecret, nil
	case kind&^(fs.ModeDir|fs.ModeSymlink) != 0:
		return ReasonSpecial, nil
	case refusedByGit(base(path), kind == fs.ModeSymlink):
		return ReasonName, nil
	case kind != fs.ModeSymlink || !s.rules.SkipOutside:
		return "", nil
	}
	target, err := root.Readlink(path)
	if outside := (*OutsideError)(nil); errors.As(checkLink(path, target), &outside) && err == nil {
		return ReasonOutside, nil
	}
	return "", err
}

// pattern is one line of a .gitignore.
type pattern struct {
	glob     string
	plain    int  // length of what precedes the first wildcard
	include  bool // starts with !
	folders  bool // ends with /
	anchored bool // contains another /
}

// parsePatterns parses lines as git does, without blank lines and comments.
func parsePatterns(lines []string) ([]pattern, error) {
	var all []pattern
	for _, text := range lines {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		if p.glob != "" {
			all = append(all, p)
		}
	}
	return all, nil
}

func parsePattern(text string) (pattern, error) {
	glob := trimSpaces(text)
	if strings.HasPrefix(glob, "#") {
		return pattern{}, nil
	}
	p := pattern{}
	glob, p.include = strings.CutPrefix(glob, "!")
	glob, p.folders = strings.CutSuffix(glob, "/")
	p.anchored = strings.Contains(glob, "/")
	p.glob = strings.TrimPrefix(glob, "/")
	if broken(p.glob) {
		return pattern{}, fmt.Errorf("invalid ignore pattern %q: use the syntax of .gitignore", text)
	}
	if p.plain = strings.IndexAny(p.glob, `*?[\`); p.plain < 0 {
		p.plain = len(p.glob)
	}
	return p, nil
}

// trimSpaces removes trailing spaces, except after a backslash.
func trimSpaces(s string) string {
	end := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = i + 1
	}
	return s[:min(end, len(s))]
}

// matches reports whether the last matching pattern excludes the path.
func matches(patterns []pattern, path string, folder bool) bool {
	last, ok := lastFit(patterns, path, folder)
	return ok && !last.include
}

func lastFit(patterns []pattern, path string, folder bool) (pattern, bool) {
	for i := len(patterns) - 1; i >= 0; i-- {
		if patterns[i].fits(path, folder) {
			return patterns[i], true
		}
	}
	return pattern{}, false
}

func (p pattern) fits(path string, folder bool) bool {
	if p.folders && !folder {
		return false
	}
	if !p.anchored {
		path = base(path)
	}
	// git compares what precedes the first wildcard, and takes the rest for a pattern: y**/a begins with **
	rest, ok := strings.CutPrefix(path, p.glob[:p.plain])
	return ok && wildmatch(p.glob[p.plain:], rest, p.anchored) == fits
}

// base returns the last element of a path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
