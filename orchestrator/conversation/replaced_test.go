package conversation_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ductor/cli"
	"ductor/internal/store"
	"ductor/orchestrator"
	"ductor/orchestrator/conversation"
)

// replaceDir replaces a directory by a link, as an agent with a shell can.
func replaceDir(t *testing.T, dir, target string) {
	t.Helper()
	if err := errors.Join(os.Rename(dir, dir+".moved"), os.Symlink(target, dir)); err != nil {
		t.Fatal(err)
	}
}

// An agent replaces its directory by a link to another project, to lose the limits of its own project and to get the
// tools that the other one allows. No turn runs there, and the limits of its own project still apply.
func TestAttackALinkIntoAnotherProject(t *testing.T) {
	root := cli.RealPath(t.TempDir())
	at := func(path string) string { return filepath.Join(root, path) }
	for _, dir := range []string{"shop/api", "shop/job", "shop/client", "open"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	web := cli.ToolList{Denied: []string{"web"}}
	h := openAt(t, newPath(t), func(o *conversation.Options) {
		o.Dir, o.Roots, o.Orders = root, []string{root}, o.Store.(*store.DB)
		o.Projects = []orchestrator.ProjectPolicy{
			{Dir: at("shop"), Tools: web},
			{Dir: at("open"), Bounds: orchestrator.Bounds{AllowedTools: []string{"shell"}}},
		}
	})
	if _, err := h.SetDir(t.Context(), here, at("shop/api"), owner); err != nil {
		t.Fatal(err)
	}
	client := orchestrator.Outsider{Name: "ide", Number: 4, Owner: 1, Dir: at("shop/client")}
	call, end, err := h.OpenOutside(t.Context(), client)
	if err != nil || call.Request.Dir != client.Dir {
		t.Fatalf("a client works in %q, %v", call.Request.Dir, err)
	}
	end()
	h.submit(t, here, "before")
	h.await(t, "done before")
	for _, dir := range []string{"shop/api", "shop/job", "shop/client"} {
		replaceDir(t, at(dir), at("open"))
	}

	h.submit(t, here, "after")
	h.await(t, "failed after")
	p, err := h.Permissions(t.Context(), here)
	if err != nil || !slices.ContainsFunc(p.OtherTools, web.Equal) {
		t.Errorf("the limits of the directory are %+v, %v", p.OtherTools, err)
	}
	err = h.SubmitOrder(t.Context(), order("o", "x", orchestrator.Wants{Own: "job", Dir: at("shop/job")}))
	if !errors.Is(err, orchestrator.ErrReplacedDir) {
		t.Errorf("a job in a replaced directory: %v", err)
	}
	if call, _, err := h.OpenOutside(t.Context(), client); !errors.Is(err, orchestrator.ErrReplacedDir) {
		t.Errorf("a client in a replaced directory works in %q, %v", call.Request.Dir, err)
	}
	if got := h.agent.prompts(); !slices.Equal(got, []string{"before"}) {
		t.Errorf("the agent was asked %q", got)
	}
}
