"""Emacs with eglot, without a screen, as their makers ship them."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from typing_extensions import override

from tests.support.programs.real_editors import LOOK_S, START_S, Json, RealEditor, program, running


class Emacs(RealEditor):
    """Emacs, spoken to through its own server."""

    @property
    def socket(self) -> str:
        """Where it listens."""
        return str(self.home / "emacs.sock")

    @override
    async def ask(self, code: str) -> Any:
        """Run Emacs Lisp in the buffer of the file and give the value of the last form."""
        out = self.home / f"out-{next(self.numbers)}.json"
        path = self._file(
            f"""
            (let ((value (with-current-buffer (or (and (boundp 't-buffer) t-buffer) (current-buffer))
                           {code})))
              (with-temp-file "{out}"
                (insert (json-serialize (list :value (or value :null))))))
            """,
            ".el",
        )
        _ = await self._output(
            "emacsclient", "-s", self.socket, "--eval", f'(progn (load "{path}" nil t) nil)'
        )
        return json.loads(out.read_text("utf-8"))["value"]

    async def answer_with(self, *titles: str) -> None:
        """Choose these in the minibuffer, in this order, whenever it asks for one of a list; then leave it."""
        chosen = " ".join(json.dumps(title) for title in titles)
        # A minibuffer needs a frame, and there is none.
        _ = await self.ask(
            f"""
            (progn
              (setq t-asked nil t-titles (list {chosen}))
              (advice-add 'completing-read :override
                          (lambda (prompt &rest _) (push prompt t-asked) (or (pop t-titles) ""))
                          '((name . t-user)))
              t)
            """
        )

    async def open(self, path: Path) -> None:
        """Open a file."""
        _ = await self.ask(f'(progn (setq t-buffer (find-file-noselect "{path}")) t)')

    async def text(self) -> str:
        """Give the text of the file's buffer."""
        return await self.ask("(buffer-substring-no-properties (point-min) (point-max))") or ""

    async def is_modified(self) -> bool:
        """Tell whether it is unsaved."""
        return await self.ask("(if (buffer-modified-p) t :false)") is True

    async def type_at_top(self, text: str) -> None:
        """Type at the top, as one step."""
        _ = await self.ask(
            f"(progn (undo-boundary) (goto-char (point-min)) (insert {json.dumps(text, ensure_ascii=False)}) (undo-boundary) t)"
        )

    async def undo(self) -> None:
        """Take one step back, as the command does."""
        _ = await self.ask(
            "(progn (setq last-command (if (bound-and-true-p t-undoing) 'undo 'ignore)) (undo-boundary) (undo) (setq t-undoing t) t)"
        )

    async def save(self) -> None:
        """Write the file."""
        _ = await self.ask("(progn (save-buffer) t)")

    async def serve(self, argv: Sequence[str], options: Json | None = None) -> None:
        """Start the server for the file, as a user's configuration does, and open a session."""
        contact = " ".join(json.dumps(word) for word in argv)
        chosen = json.dumps(json.dumps(options or {}, ensure_ascii=False), ensure_ascii=False)
        _ = await self.ask(
            f"""
            (progn
              (setq t-options (json-parse-string {chosen} :object-type 'plist))
              (add-to-list 'eglot-server-programs
                           (list 'python-mode . ({contact} :initializationOptions ,t-options)))
              t)
            """.replace(
                f"(list 'python-mode . ({contact} :initializationOptions ,t-options))",
                f"(append (list 'python-mode {contact}) (list :initializationOptions t-options))",
            )
        )
        _ = await self.ask(
            "(progn (python-mode) (let ((inhibit-message t)) (apply #'eglot (eglot--guess-contact))) t)"
        )
        _ = await self.until("(if (eglot-current-server) t :false)")
        _ = await self.request("agent/session/open", {})

    async def send(self, method: str, params: Json) -> None:
        """Send a request; `answer` waits for what comes back."""
        _ = await self.ask(
            f"""
            (progn
              (setq t-answer nil)
              (jsonrpc-async-request
               (eglot-current-server) (intern ":{method}")
               (json-parse-string {json.dumps(json.dumps(params, ensure_ascii=False), ensure_ascii=False)} :object-type 'plist :false-object :json-false)
               :timeout 60 :deferred :agent
               :success-fn (lambda (result) (setq t-answer (list :result (or result (list :none t)))))
               :error-fn (lambda (error) (setq t-answer (list :error (format "%S" error))))
               :timeout-fn (lambda () (setq t-answer (list :error "no answer"))))
              t)
            """
        )

    async def answer(self) -> Any:
        """Wait for the answer to what was sent."""
        told = await self.until(
            "(and t-answer (json-parse-string (jsonrpc--json-encode t-answer) :object-type 'hash-table))"
        )
        assert "error" not in told, told
        return told["result"]

    async def request(self, method: str, params: Json) -> Any:
        """Send a request and wait for its answer."""
        await self.send(method, params)
        return await self.answer()

    async def busy(self, *, after_s: float, for_s: float, then: str) -> None:
        """Keep the editor from listening for a while; then type, before it hears of anything."""
        _ = await self.ask(
            f"""
            (progn
              (run-at-time {after_s} nil
                (lambda ()
                  (let ((end (+ (float-time) {for_s}))) (while (< (float-time) end)))
                  (with-current-buffer t-buffer {then})))
              t)
            """
        )


@asynccontextmanager
async def emacs(*, env: Mapping[str, str], root: Path, home: Path) -> AsyncGenerator[Emacs]:
    """Start Emacs with eglot for as long as the block."""
    found = program("emacs with eglot")
    home.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - before anything runs
    init = home / "init.el"
    # To be asked in a terminal that is not there would wait for ever.
    init.write_text(
        """
        (require 'package) (package-initialize) (require 'eglot) (require 'json)
        (setq eglot-confirm-server-initiated-edits nil eglot-autoshutdown t eglot-sync-connect 20
              make-backup-files nil auto-save-default nil create-lockfiles nil
              t-undoing nil t-answer nil)
        """,
        encoding="utf-8",
    )
    editor = Emacs(
        program=found, home=home, env={**env, "TERM": "dumb", "HOME": str(home)}, root=root
    )
    # Emacs would compile its own files anew for the home of each test.
    compiled = "(setq native-comp-jit-compilation nil native-comp-deferred-compilation nil)"
    options = ("-q", "--no-site-file", "--eval", compiled, "-l", str(init))
    async with _listening(editor, options):
        yield editor


@asynccontextmanager
async def emacs_of(*, env: Mapping[str, str], root: Path, home: Path) -> AsyncGenerator[Emacs]:
    """Start Emacs as the user with that home does, with what they wrote into their configuration."""
    editor = Emacs(
        program=program("emacs with eglot"),
        home=home,
        env={**env, "TERM": "dumb", "HOME": str(home)},
        root=root,
    )
    async with _listening(editor, ()):
        yield editor


@asynccontextmanager
async def _listening(editor: Emacs, options: Sequence[str]) -> AsyncGenerator[None]:
    argv = [str(editor.program), *options, f"--fg-daemon={editor.socket}"]
    async with running(argv, editor):
        with anyio.fail_after(START_S):
            while not Path(editor.socket).exists():  # noqa: ASYNC110, ASYNC240 - a socket tells nobody that it is there
                await anyio.sleep(LOOK_S)
        yield
