package approval

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ductor/cli"
	"ductor/internal/rooted"
	"ductor/orchestrator"
)

const inspectWait = 20 * time.Second

// pathBytes limits the length of a path in a request. A longer text is not a path.
const pathBytes = 4096

// Files reads files in the environment of an agent.
type Files interface {
	// The methods behave like rooted.Read and rooted.RealPaths.
	ReadFile(ctx context.Context, dir, below string, limit int64) ([]byte, error)
	RealPaths(ctx context.Context, paths []string) ([]string, error)
}

type machine struct{}

func (machine) ReadFile(_ context.Context, dir, below string, most int64) ([]byte, error) {
	return rooted.Read(dir, below, most)
}

func (machine) RealPaths(_ context.Context, paths []string) ([]string, error) {
	return rooted.RealPaths(paths), nil
}

func (r *Requests) files() (Files, error) {
	if in := r.turn.Turn.Sandbox; in != "" {
		return r.s.opts.Files(in)
	}
	return machine{}, nil
}

// planBytes is the maximum length of a plan that a chat shows.
const planBytes = 64 << 10

// readPlan reads the plan file that a request names, and adds the plan to the request. If readPlan cannot read the
// file, it marks the request as incomplete.
func (r *Requests) readPlan(ctx context.Context, p *cli.ApprovalAsked) {
	if p.Tool != cli.PlanTool || p.Detail != "" || len(p.Input) > 0 || !filepath.IsAbs(p.Title) ||
		filepath.Ext(p.Title) != ".md" {
		return
	}
	var plan []byte
	files, err := r.files()
	if err == nil {
		plan, err = files.ReadFile(ctx, filepath.Dir(p.Title), filepath.Base(p.Title), planBytes)
	}
	if err != nil {
		r.log.Error("read the plan of a request", "err", err)
	}
	if p.Detail = strings.TrimSpace(string(plan)); p.Detail == "" {
		p.Missing = cmp.Or(p.Missing, "the plan")
	}
}

// inspect reads files in the turn's environment and adds information about them to a request: the files of a skill, a
// plan, and the targets of symbolic links.
func (r *Requests) inspect(a *orchestrator.ApprovalRequest) {
	ctx, cancel := context.WithTimeout(r.life, inspectWait)
	defer cancel()
	t := r.turn.Turn
	*a.Request = r.s.opts.Agents.ShowSkill(ctx, a.Agent, cli.Request{Sandbox: t.Sandbox, Session: string(t.Session),
		Dir: r.turn.Dir, Accounts: cli.Accounts{t.Agent: t.Entry.Account}}, *a.Request)
	r.readPlan(ctx, a.Request)
	r.findLinks(ctx, a)
}

// findLinks adds the targets of symbolic links to a request. If it cannot find out whether a path is a symbolic link,
// it marks the request as incomplete.
func (r *Requests) findLinks(ctx context.Context, a *orchestrator.ApprovalRequest) {
	p, named := a.Request, pathsOf(*a)
	if len(named) == 0 || !filepath.IsAbs(r.turn.Dir) {
		return
	}
	files, err := r.files()
	var real []string
	if err == nil {
		real, err = files.RealPaths(ctx, append([]string{r.turn.Dir}, named...))
	}
	if err != nil {
		r.log.Error("resolve the paths of a request", "err", err)
		p.Missing = cmp.Or(p.Missing, "where its paths lead")
		return
	}
	a.Links = linksOf(r.turn.Dir, named, real[0], real[1:])
	realOf := map[string]string{}
	for i, path := range named {
		realOf[path] = real[i+1]
	}
	p.Changes = slices.Clone(p.Changes)
	for i, c := range p.Changes {
		if path := realOf[cli.Absolute(r.turn.Dir, c.Path)]; path != "" && c.Kind != cli.FileDeleted &&
			onlyAdds(c.Diff) {
			p.Changes[i].Kind = kindOf(ctx, files, path, c.Kind)
		}
	}
}

// targetMoved reports whether the target of a symbolic link in a request has changed since the user saw the request. It
// also returns true if it cannot resolve the link.
func (r *Requests) targetMoved(asked orchestrator.ApprovalRequest) bool {
	ctx, cancel := context.WithTimeout(r.life, inspectWait)
	defer cancel()
	now, p := asked, *asked.Request
	now.Request = &p
	r.findLinks(ctx, &now)
	return now.Request.Missing != asked.Request.Missing || !slices.Equal(now.Links, asked.Links)
}

func onlyAdds(diff string) bool {
	for line := range strings.Lines(diff) {
		if !strings.ContainsAny(line[:1], `@+\`) {
			return false
		}
	}
	return true
}

// kindOf returns FileUpdated if the file exists, and FileAdded if not. It does not rely on the kind that the agent
// reported, because many agents report none. It returns the reported kind if it cannot check the file.
func kindOf(ctx context.Context, files Files, path string, reported cli.ChangeKind) cli.ChangeKind {
	_, err := files.ReadFile(ctx, "/", strings.TrimPrefix(path, "/"), 0)
	var refused *rooted.Error
	if !errors.As(err, &refused) {
		return reported
	}
	switch refused.Refusal {
	case rooted.NotThere:
		return cli.FileAdded
	case rooted.TooLarge, rooted.Empty:
		return cli.FileUpdated
	}
	return reported
}

// linksOf returns the paths that lead through a symbolic link. The caller passes the directory and the paths twice: as
// the request contains them, and without symbolic links.
func linksOf(dir string, paths []string, realDir string, realPaths []string) (links []orchestrator.Link) {
	for i, path := range paths {
		expected := path
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			expected = filepath.Join(realDir, rel)
		}
		if realPaths[i] != expected {
			links = append(links, orchestrator.Link{
				Path: cli.Relative(dir, path), Real: cli.Relative(realDir, realPaths[i]),
				Outside: !cli.Lies(realPaths[i], realDir),
			})
		}
	}
	return links
}

// pathsOf returns all texts in a request that could be paths, as absolute paths: changed files, the title, fields, and
// the words of a command.
func pathsOf(a orchestrator.ApprovalRequest) (paths []string) {
	p := a.Request
	seen := map[string]bool{}
	add := func(text string) {
		text = strings.TrimPrefix(text, "file://")
		if text == "" || len(text) > pathBytes || strings.ContainsAny(text, "\n\x00") {
			return
		}
		if path := cli.Absolute(a.Dir, text); !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	for _, c := range p.Changes {
		add(c.Path)
	}
	if p.Tool != cli.PlanTool {
		add(p.Title)
	}
	for _, f := range p.Fields {
		if f.Weight != cli.LabelField {
			add(f.Value)
		}
	}
	for _, word := range wordsOf(p, commandOf(a)) {
		add(word)
	}
	return paths
}

// wordsOf returns the words of a plain command, including the program. For a tool that reads a file, it returns the
// path of the file. Each returned word could be a path.
func wordsOf(p *cli.ApprovalAsked, command string) []string {
	if plainCommand(command) {
		return strings.Split(command, " ")
	}
	if path := p.Effect.Read; path != "" {
		return []string{path}
	}
	return nil
}
