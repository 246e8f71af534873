package pipeline

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// taken are names that a run directory keeps its own record under.
var taken = []string{"events.jsonl", "meta.json", "traces.jsonl", "provenance.jsonl", "spend.jsonl", "state.json", "pipeline.yaml", "plan.json"}

func (d *decoder) artifact(o object) {
	n := o.values["artifact"]
	if n == nil {
		return
	}
	a, ok := d.object(n, "artifact", "file", "seed")
	if !ok {
		return
	}
	d.def.Artifact = &Artifact{File: d.plainFile(a, "artifact.html")}
	if seed := a.need("seed", "seed: the path of the page a run starts from"); seed != nil {
		d.def.Artifact.Seed, _ = d.existing(seed, "artifact.seed", d.text(seed, "artifact.seed"))
	}
}

// plainFile reads `file`, a name without folders that the run directory can hold.
func (d *decoder) plainFile(o object, example string) string {
	file := o.needText("file", "file: "+example)
	switch {
	case file == "":
	case slices.Contains(taken, strings.ToLower(file)):
		d.problemAt(o.line("file"), "%s is %s, which the run directory keeps for itself; choose another name", o.at("file"), file)
	default:
		d.checkName(o.values["file"], o.at("file"), file)
	}
	return file
}

func (d *decoder) workspace(o object) {
	n := o.values["workspace"]
	if n == nil {
		return
	}
	w, ok := d.object(n, "workspace", "git", "dir", "dirty", "ignore", "secrets")
	if !ok {
		return
	}
	if d.def.Artifact != nil {
		d.problem(n, "there is an artifact and a workspace; keep the one that the passes revise")
	}
	d.def.Workspace = &Workspace{Ignore: w.texts("ignore"), Secrets: w.oneOf("secrets", "skip", "keep")}
	if w.has("dirty") && !w.has("git") {
		d.problemAt(w.line("dirty"), "workspace.dirty speaks of a git checkout; leave it out, or write git: worktree")
	}
	switch {
	case w.has("git") == w.has("dir"):
		d.problem(n, "workspace needs git or dir; write {git: worktree} or {dir: FOLDER}")
	case w.has("git"):
		d.def.Workspace.Git = w.oneOf("git", "worktree")
		d.def.Workspace.Dirty = w.oneOf("dirty", "halt", "include", "exclude", "commit")
	default:
		d.def.Workspace.Dir, _ = d.localPath(w.values["dir"], "workspace.dir", w.text("dir"))
	}
}

func (d *decoder) snapshots(o object) {
	if !o.has("snapshots") {
		return
	}
	if o.oneOf("snapshots", "manifests", "full") == "full" {
		d.def.Snapshots = "full"
	}
	if d.def.Workspace == nil {
		d.problemAt(o.line("snapshots"), "snapshots are of a workspace, and the pipeline has none; write workspace: {git: worktree} or {dir: FOLDER}, or leave snapshots out")
	}
}

var marker = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

func (d *decoder) notes(o object) {
	n := o.values["notes"]
	if n == nil {
		return
	}
	files, markers := map[string]string{}, map[string]string{}
	d.named(n, "notes", "note", func(key, value *yaml.Node, path string) {
		note := Note{Name: key.Value}
		if e, ok := d.object(value, path, "file", "marker"); ok {
			note.File = d.plainFile(e, key.Value+".md")
			note.Marker = e.needText("marker", "marker: "+strings.ToUpper(key.Value)+"_ADDITION")
			d.checkMarker(e, note.Marker)
			d.unique(e, "file", note.File, note.Name, files)
			d.unique(e, "marker", note.Marker, note.Name, markers)
		}
		d.def.Notes = append(d.def.Notes, note)
	})
}

func (d *decoder) checkMarker(o object, m string) {
	if m != "" && !marker.MatchString(m) {
		d.problemAt(o.line("marker"), "%s is %q; write capitals, digits and underscores, such as DISCOVERY_LOG", o.at("marker"), m)
	}
}

// unique says when value, under key, already belongs to another.
func (d *decoder) unique(o object, key, value, owner string, owners map[string]string) {
	if other, dup := owners[value]; dup && value != "" {
		d.problemAt(o.line(key), "%s is %s, the same as in %s; choose another", o.at(key), value, other)
	}
	owners[value] = owner
}

func (d *decoder) corpus(o object) {
	n := o.values["corpus"]
	if n == nil {
		return
	}
	d.named(n, "corpus", "set", func(key, value *yaml.Node, path string) {
		set := Set{ID: key.Value}
		if s, ok := d.object(value, path, "theme", "files"); ok {
			set.Theme = s.needText("theme", "theme: what the set is about")
			if set.Theme != "" {
				d.label(s.values["theme"], "theme", set.Theme)
			}
			if files := s.need("files", "files: [LABEL: PATH, ...]"); files != nil {
				set.Files = d.files(files, s.at("files"))
			}
		}
		d.def.Corpus = append(d.def.Corpus, set)
	})
}
