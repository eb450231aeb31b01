// Package script is the small language in which a prompt tells a simulated model or agent what to do.
//
// A prompt holds directives in double square brackets, run in order; text around them is only the
// prompt's plain part. A prompt without any gets a friendly default answer.
//
//	[[text "Hello **world**" delay=5ms chunk=4]]   stream this text, chunk characters at a time
//	[[text n=200 size=20 delay=25ms]]              n deltas of generated text, size characters each
//	[[text "key: " env=NAME file="/a"]]            with what a variable and a file hold, as the agent finds them
//	[[words p7 n=200 from=10]]                     numbered words, p7w10 p7w11 and so on, same options
//	[[think "…"]]                                  reasoning, same options as text
//	[[tool cmd="echo hi" dir="/"]]                 run a shell command with the agent's shell tool; dir is for a model of Codex
//	[[write path="a.txt" text="…"]]                write a file with the agent's file tool
//	[[tool cmd="echo hi" as=Bash]]                 the same by a model that calls the tool by that name, offered or not
//	[[call send_message args="{\"text\":\"x\"}"]]   call a tool that a server serves to the agent; modelapi only
//	[[ask cmd="touch x"]]                          a shell command that needs permission
//	[[request Bash params="{\"command\":\"ls\"}"]]   a request for permission with these fields and nothing behind it
//	[[background "sleep 1" text="…"]]              a command that the agent does not wait for, and what it says afterwards
//	[[question "Which?" secret=1 echo=1]]          ask in words; Codex's app server only
//	[[error 429 retry_after=1 times=2]]            the model's API fails; for ever without times
//	[[hang]] [[drop times=1]]                      silence for ever; the connection breaks in mid text
//	[[end refusal times=1]]                        a model ends its answer: max-tokens, refusal, or unsaid for no reason given
//	[[crash code=3]] [[silent]]                    the agent dies; the agent exits 0 without a result
//	[[garbage bytes=64]] [[longline bytes=300000]] [[endlessline]]   what an agent prints when it is broken
//	[[ignore-term]] [[hold-pipe for=60s]]          ignore SIGTERM; leave a process holding standard output
//	[[compact]] [[retry-text "half"]] [[history]]  compaction; text given up by a retry; earlier prompts
//	[[late "text" after=100ms]]  text behind the reply that ends the turn, of an agent of the Agent Client Protocol
//	[[usage in=10 out=5 cached=3 cost=0.01]]       what the turn counts
//	[[sleep 1s]]                                   a pause
//	[[start]]                                      forget every directive before this one
//
// Values are bare words or quoted with the escapes \n \t \" \\. A directive with a known name and bad
// values becomes a Text step that says so, so that a mistake in a test is seen. Brackets with an unknown
// name are plain text.
//
// It is not an interpreter: what each step means on the wire is said by the packages agent and modelapi.
package script
