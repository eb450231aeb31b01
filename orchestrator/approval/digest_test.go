package approval

import (
	"testing"

	"ductor/cli"
	"ductor/orchestrator"
)

// TestDigestsOutliveAnUpgrade: rules and open requests are stored by their digests, so renaming fields or types must
// not change a digest.
func TestDigestsOutliveAnUpgrade(t *testing.T) {
	request := orchestrator.ApprovalRequest{Agent: "claude", Dir: "/srv", Request: &cli.ApprovalAsked{
		ID: "1", Tool: "Edit", Title: "a.txt", Detail: "all", Input: []byte(`{"path":"a.txt","n":1}`), Missing: "the diff",
		Changes: []cli.FileChanged{{Path: "a.txt", Kind: cli.FileUpdated, Diff: "+x"}},
		Fields:  []cli.Field{{Name: "n", Value: "1"}, {Name: "id", Value: "7", Weight: cli.LabelField}, {Name: "b", Value: "2", Weight: cli.WiderField}},
	}}
	questions := orchestrator.ApprovalRequest{Agent: "codex", Dir: "/srv", Questions: []cli.Question{
		{Header: "Color", Text: "Which?", Options: []cli.Option{{Label: "Red", Description: "warm"}, {Label: "Blue"}}, Multi: true, Free: true},
		{Text: "Word?", Secret: true},
	}}
	bare := orchestrator.ApprovalRequest{Agent: "gemini", Request: &cli.ApprovalAsked{Tool: "Bash", Title: "ls"}}
	for digest, a := range map[string]orchestrator.ApprovalRequest{
		"93b6cf0d570fa7d7ee00916229ab179b3fb1805633ac651a21cf6e7f3e33bed5": request,
		"2e42935d5b1ac4db4ce874099334c92f7d9f6593da08a41bc4b7ff6e04871f49": questions,
		"1daf56ab677e879659069011ebd1b98ae95875cfcc30863911b7dfbd491e34d0": bare,
	} {
		if got := digestOf(a); got != digest {
			t.Errorf("the digest is %s, want %s", got, digest)
		}
	}
}
