package bot

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"ductor/bot/tgapi"
	"ductor/orchestrator"
)

// actCron is the action of the buttons of /cron.
const actCron = "j"

// cronOp is what a button of /cron does.
type cronOp string

// The operations. Those of drafts are cronAdd, cronCancel and those that change a job.
const (
	cronList    cronOp = "l" // with a page
	cronOpen    cronOp = "o"
	cronNew     cronOp = "n" // cronOpen in a new message
	cronRun     cronOp = "r" // with how often it was asked for
	cronPause   cronOp = "p"
	cronResume  cronOp = "u"
	cronHistory cronOp = "h"
	cronEdit    cronOp = "e"
	cronField   cronOp = "f" // with the field
	cronValue   cronOp = "v" // with the field and the number of the choice
	cronModel   cronOp = "w"
	cronDelete  cronOp = "d" // asks first
	cronDeleted cronOp = "D"
	cronAdd     cronOp = "a"
	cronCancel  cronOp = "x"
)

// cronPress is what a pressed button of /cron says.
type cronPress struct {
	op  cronOp
	key string // of the job, or of the draft
	arg string
}

// jobKey is a job as a button names it: ids may be longer than a button can carry.
func jobKey(id orchestrator.JobID) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// draftKey is a draft as a button names it.
func draftKey(nonce string) string { return "+" + nonce }

// draft is the nonce of the draft that the button names, if it names one.
func (p cronPress) draft() (nonce string, is bool) { return strings.CutPrefix(p.key, "+") }

// number is the argument as a number that may be one of a page or a choice; 0 for what is none.
func (p cronPress) number() int {
	n, _ := tgapi.ButtonNumber(p.arg)
	return n
}

// cronButton makes a button. All it carries is bounded, so it fits.
func cronButton(text string, op cronOp, key, arg string) tgapi.Button {
	data, _ := tgapi.ButtonData(actCron, string(op)+":"+key+":"+arg)
	return tgapi.Button{Text: text, Data: data}
}

// parseCronData undoes cronButton. What comes here was made by anybody.
func parseCronData(what string) (cronPress, bool) {
	parts := strings.Split(what, ":")
	if len(parts) != 3 || len(parts[0]) != 1 {
		return cronPress{}, false
	}
	p := cronPress{op: cronOp(parts[0]), key: parts[1], arg: parts[2]}
	return p, p.key != "" || p.op == cronList
}

// choice parts the argument of cronValue.
func (p cronPress) choice() (field string, index int, ok bool) {
	if p.arg == "" {
		return "", 0, false
	}
	index, err := strconv.Atoi(p.arg[1:])
	return p.arg[:1], index, err == nil && index >= 0
}
