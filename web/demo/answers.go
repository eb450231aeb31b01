package demo

import (
	"fmt"

	"ductor/internal/sim/agent"
)

// Prompts of the tour. The scripted agent has a special answer to each of them.
const (
	streamPrompt   = "What can you do?"
	toolPrompt     = "What is in this project?"
	approvalPrompt = "Make a file called hello.txt"
	changePrompt   = "The README promises a discount. Add it."
	abortPrompt    = "Tell me how tea came to Europe"
	handOverPrompt = "Where were we?"
	filePrompt     = "Write a report, please"
	restartPrompt  = "Tell me about teabags"
)

// Answers returns the reactions of the scripted agent, by prompt. The map contains the prompts of the tour, and a
// reaction to all other prompts. The values are scripts for internal/sim/script.
func Answers() map[string]string {
	return map[string]string{
		streamPrompt: `[[think "The user wants an overview. Keep it short." delay=60ms]] [[text "I work in your **project directory** and answer ` +
			`here, in one message that grows.\n\n## What I can show\n\n- *formatted* text, ` + "`code`" +
			` and [links](https://core.telegram.org/bots)\n- ` +
			`~~mistakes~~ corrections, as I go\n- tables, lists and quotes\n\n` +
			"```go\\nfunc main() {\\n\\tfmt.Println(\\\"hello from your phone\\\")\\n}\\n```" +
			`\n\n> You write on the phone,\n> I work on your machine.\n\nThat was live." chunk=6 delay=35ms]]`,
		toolPrompt: `[[tool cmd="ls -l; cat README.md"]] [[text "It is a tea shop: ` + "`shop.py`" +
			` has the prices and adds up an order, and the README explains it." delay=15ms]]`,
		approvalPrompt: `[[ask cmd="echo hello from ductor > hello.txt"]] [[text "As you saw, I asked first."]]`,
		changePrompt: fmt.Sprintf(`[[write path="shop.py" text=%q]] [[text "From five items on, `+"`total`"+` now takes 10 %% off, as the README promises. `+
			`**Diff** below shows the change, and **Undo** takes it back." delay=15ms]]`, discounted()),
		abortPrompt:    `[[text "` + storyOfTea + `" chunk=3 delay=100ms]]`,
		handOverPrompt: `[[text "I am another agent, and I was given all that you and the other one said. We were talking about a tea shop."]]`,
		filePrompt: `[[write path="report.md" text="# Report\n\nThe shop sells four things.\n\n- cheapest: earl grey, 3.00\n- dearest: lemon cake, 4.50\n"]] ` +
			`[[text "Here is the report:\n\n[[file: report.md]]"]]`,
		restartPrompt: `[[text "` + storyOfTeabags +
			`\n\nductor was restarted in the middle of this. Nothing was lost." chunk=4 delay=45ms]]`,
		agent.AnyPrompt: `[[text "You asked: “` + agent.PromptPlace +
			`”\n\nI'm the demo's **scripted agent**. No model is behind me, so I can't work that out. ` +
			`All around me is real: the commands, the files, the buttons.\n\nI know some prompts by heart:\n\n- ` +
			toolPrompt + `\n- ` + changePrompt + `\n- ` +
			filePrompt + `\n\nOr try /model, /sessions or /help. For an agent with a model, run ` + "`ductor setup`" +
			` in a terminal." chunk=6 delay=25ms]]`,
	}
}

// storyOfTea is an answer that takes a minute, which is enough time for the user to stop it.
const storyOfTea = "Tea is Chinese, and for centuries it stayed in Asia. A legend has it that leaves fell into the hot water of an emperor in " +
	"2737 BC, who liked what he tasted.\\n\\nThe first tea that Europe drank came by ship. Portuguese sailors knew the drink from Macau, and in 1610 " +
	"the Dutch East India Company carried the first chests of it to Amsterdam. It was sold by pharmacists, as a medicine, at the price of silver." +
	"\\n\\nHow a country calls it still shows the way by which it came. Where it came by sea, from the harbours of Fujian, it is named after their " +
	"word *te*: tea, thé, Tee. Where it came by land, along the Silk Road and through Russia, the northern word *cha* came along: chai, çay, чай. " +
	"Portugal says *chá*, because Macau did.\\n\\nEngland was late. A coffee house in London offered the China drink in 1657, and a Portuguese " +
	"princess, Catherine of Braganza, made it a fashion at court when she married Charles II in 1662. A hundred years later it was the drink of " +
	"everyone, it was taxed at more than its own price, and more of it was smuggled than imported. When Parliament lowered the duty in 1784 from " +
	"119 to 12.5 percent, smuggling ended almost in a year.\\n\\nThe plant itself was a secret. In 1848 Robert Fortune, a botanist, travelled " +
	"through China in disguise and sent thousands of seedlings to India in glass cases. He also found out that green and black tea come from the " +
	"same plant, which no one in Europe had believed."

const storyOfTeabags = "The teabag is said to be a misunderstanding. Around 1908 Thomas Sullivan, a merchant in New York, sent samples of his tea in " +
	"small silk bags, because tins were too dear. His customers put them into the pot as they were, and asked for more.\\n\\nSeven years before, " +
	"Roberta Lawson and Mary McLaren of Milwaukee had filed a patent for a *tea leaf holder* of cotton, for one cup at a time. It is the older idea, " +
	"but nobody sold it.\\n\\nThe silk was too fine, so gauze came next, then paper. The bag with two chambers, through which water flows from " +
	"all sides, is from 1949. Adolf Rambold made it in Düsseldorf, with a machine that folded it without any glue, and it is much the same today."
