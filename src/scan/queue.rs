//! Pieces on their way: guessed, walked in any order, and handed back in that of the file.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::Duration;

use rayon::Yield;

use super::{Done, Piece};

/// How long a thread that has nothing to do waits before it looks for work again.
const PATIENCE: Duration = Duration::from_micros(200);

/// What is to be done on some thread.
pub(super) enum Task<'a> {
    /// Find a boundary near byte `at`.
    Guess { number: usize, at: u64 },
    /// Walk a piece.
    Walk { number: usize, piece: Piece<'a> },
}

/// What came of it.
pub(super) enum Message<'a, R> {
    Guessed {
        number: usize,
        boundary: Option<u64>,
    },
    Walked {
        number: usize,
        done: Done<R>,
        piece: Piece<'a>,
    },
    /// The thread panicked.
    Lost,
}

/// What a queue that was waited for has.
pub(super) enum Next<'a, R> {
    /// The next piece, and what came of it.
    Piece(Done<R>, Piece<'a>),
    /// An answer that may have made new tasks.
    Answer,
    /// Nothing more.
    Nothing,
    /// A thread panicked; that goes on where the scope ends.
    Lost,
}

/// Pieces of one window between guessed boundaries.
pub(super) struct Queue<'a, R> {
    /// Boundaries are guessed near every so many bytes, the next one here, up to the end.
    at: u64,
    piece_bytes: u64,
    end: u64,
    /// Guesses that were asked for, and the number of the first that is not yet an end of a piece.
    asked: usize,
    used: usize,
    guesses: VecDeque<Option<Option<u64>>>,
    /// Where the next piece begins.
    start: u64,
    /// Pieces that were given out, and the number of the first that was not handed back.
    given: usize,
    returned: usize,
    walked: VecDeque<Option<(Done<R>, Piece<'a>)>>,
    sender: Sender<Message<'a, R>>,
    receiver: Receiver<Message<'a, R>>,
}

impl<'a, R> Queue<'a, R> {
    pub(super) fn new(first: u64, piece_bytes: u64, end: u64) -> Self {
        let (sender, receiver) = channel();
        Self {
            at: first.saturating_add(piece_bytes),
            piece_bytes,
            end,
            asked: 0,
            used: 0,
            guesses: VecDeque::new(),
            start: first,
            given: 0,
            returned: 0,
            walked: VecDeque::new(),
            sender,
            receiver,
        }
    }

    /// What to do next, where all before `offset` was passed; `None` where enough is under way, `ahead` guesses and as many pieces, or
    /// nothing is left.
    pub(super) fn next(&mut self, ahead: usize, offset: u64, cut: impl Fn(u64, u64) -> Option<Piece<'a>>) -> Option<Task<'a>> {
        // One record may have been longer than many pieces.
        self.start = self.start.max(offset);
        self.at = self.at.max(offset.saturating_add(self.piece_bytes));
        while self.given - self.returned < ahead
            && let Some(Some(boundary)) = self.guesses.front()
        {
            let boundary = *boundary;
            self.guesses.pop_front();
            self.used += 1;
            // Where nothing was found near, the piece goes on to the next boundary.
            let Some(end) = boundary.filter(|end| *end > self.start) else { continue };
            let Some(piece) = cut(self.start, end) else { continue };
            self.start = end;
            self.walked.push_back(None);
            self.given += 1;
            return Some(Task::Walk { number: self.given - 1, piece });
        }
        // Inside a record there may be nothing to find, however far one looks.
        let reach = self.piece_bytes.saturating_mul(ahead as u64 + 1);
        if self.at < self.end && self.guesses.len() < ahead && self.at <= offset.saturating_add(reach) {
            let at = self.at;
            self.at = at.saturating_add(self.piece_bytes);
            self.guesses.push_back(None);
            self.asked += 1;
            return Some(Task::Guess { number: self.asked - 1, at });
        }
        None
    }

    /// Where the next guess would be; `None` behind the end.
    pub(super) fn at(&self) -> Option<u64> {
        (self.at < self.end).then_some(self.at)
    }

    /// Where the answer to a task goes.
    pub(super) fn reply(&self) -> Reply<'a, R> {
        Reply(Some(self.sender.clone()))
    }

    /// What came of the next piece in file order, once that is there; else waits for an answer to any task, working on others meanwhile.
    pub(super) fn wait(&mut self) -> Next<'a, R> {
        if let Some(walked @ Some(_)) = self.walked.front_mut() {
            let walked = walked.take();
            self.walked.pop_front();
            self.returned += 1;
            return walked.map_or(Next::Nothing, |(done, piece)| Next::Piece(done, piece));
        }
        if self.walked.is_empty() && self.guesses.is_empty() {
            return Next::Nothing;
        }
        match self.receive() {
            Message::Guessed { number, boundary } => {
                if let Some(guess) = self.guesses.get_mut(number - self.used) {
                    *guess = Some(boundary);
                }
            }
            Message::Walked { number, done, piece } => {
                if let Some(walked) = self.walked.get_mut(number - self.returned) {
                    *walked = Some((done, piece));
                }
            }
            Message::Lost => return Next::Lost,
        }
        Next::Answer
    }

    fn receive(&self) -> Message<'a, R> {
        loop {
            match self.receiver.try_recv() {
                Ok(message) => return message,
                Err(TryRecvError::Disconnected) => return Message::Lost,
                Err(TryRecvError::Empty) => {}
            }
            match rayon::yield_now() {
                Some(Yield::Executed) => {}
                // Others work; outside of the pool there is nothing else to do but wait.
                Some(Yield::Idle) | None => match self.receiver.recv_timeout(PATIENCE) {
                    Ok(message) => return message,
                    Err(RecvTimeoutError::Disconnected) => return Message::Lost,
                    Err(RecvTimeoutError::Timeout) => {}
                },
            }
        }
    }
}

/// Sends the answer to one task, or that there will be none.
pub(super) struct Reply<'a, R>(Option<Sender<Message<'a, R>>>);

impl<'a, R> Reply<'a, R> {
    pub(super) fn send(mut self, message: Message<'a, R>) {
        if let Some(sender) = self.0.take() {
            // Nobody waits any more where collecting has ended the scan.
            let _ = sender.send(message);
        }
    }
}

impl<R> Drop for Reply<'_, R> {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ = sender.send(Message::Lost);
        }
    }
}
