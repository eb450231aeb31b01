// Package script parses the small language in which a prompt controls a simulated model or agent.
//
// A prompt contains directives in double square brackets, which run in order. The text around them is the plain part
// of the prompt. A prompt without directives gets a friendly default answer.
//
//	[[text "Hello **world**" delay=5ms chunk=4]]   stream this text, chunk characters at a time
//	[[text n=200 size=20 delay=25ms]]              n deltas of generated text, size characters each
//	[[text "key: " env=NAME file="/a"]]            with the contents of a variable and a file in the agent's environment
//	[[words p7 n=200 from=10]]                     numbered words, p7w10 p7w11 and so on, same options as text
//	[[think "…"]]                                  reasoning, same options as text
//	[[tool cmd="echo hi" dir="/"]]                 run a command with the agent's shell tool; only Codex uses dir
//	[[write path="a.txt" text="…"]]                write a file with the agent's file tool
//	[[tool cmd="echo hi" as=Bash]]                 like tool, but the model always uses this tool name
//	[[call send_message args="{\"text\":\"x\"}"]]   call a tool of an MCP server; modelapi only
//	[[ask cmd="touch x"]]                          a shell command that needs permission
//	[[request Bash params="{\"command\":\"ls\"}"]]   a request for permission with these fields and no action
//	[[background "sleep 1" text="…"]]              a command that runs in the background, and the agent's text after its end
//	[[question "Which?" secret=1 echo=1]]          a question that the user answers in words; Codex's app server only
//	[[error 429 retry_after=1 times=2]]            the model's API fails; without times it always fails
//	[[hang]] [[drop times=1]]                      endless silence; the connection breaks within a text
//	[[end refusal times=1]]                        the model ends early: max-tokens, refusal or unsaid (no reason)
//	[[crash code=3]] [[silent]]                    the agent dies; the agent exits 0 without a result
//	[[garbage bytes=64]] [[longline bytes=300000]] [[endlessline]]   output of a broken agent
//	[[ignore-term]] [[hold-pipe for=60s]]          ignore SIGTERM; leave a process holding standard output
//	[[compact]] [[retry-text "half"]] [[history]]  compaction; text that a retry discards; earlier prompts
//	[[late "text" after=100ms]]  text after the reply that ends the turn, in the Agent Client Protocol; file=NAME waits for a file
//	[[usage in=10 out=5 cached=3 cost=0.01]]       the usage of the turn
//	[[limits "{\"status\":\"allowed\"}"]]          the limits of the agent's plan, in the format of Claude or Codex
//	[[sleep 1s]]                                   a pause
//	[[start]]                                      forget every directive before this one
//
// Values are plain words, or quoted with the escapes \n \t \" \\. A directive with a known name and invalid values
// becomes a Text step that describes the error, so that mistakes in a test are visible. Brackets with an unknown name
// are plain text.
//
// Package script runs nothing: the packages agent and modelapi define each step in their protocols.
package script
