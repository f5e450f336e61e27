/* The lead: verifier/round/lead_round.c, lead_commit.c, peers.c and sequence.c, for one request and one drafter. */

inline lose()
{
    lost = 1;
    asked = 0;
    was_lost = (WITNESS == 3);
    rest = 1
}

inline send_down(type_, at_, what_, many_, with_, sign_)
{
    send(down, type_, at_, what_, many_, with_, sign_, 0, 0);
    if :: !taken && !lost -> lose() :: else fi
}

inline send_open()
{
    wanted = WANTED(length);
    known = 1;
    missed = 0;
    expired = 0;
    send_down(OPEN, length, tokens, 0, mark, 0)
}

inline peers_assign()
{
    assigned = !lost;
    known = 0;
    if
    :: assigned && WANTED(length) > 0 -> send_open()
    :: assigned && WANTED(length) == 0 -> missed = 1 /* it need not read the prompt yet */
    :: !assigned -> skip
    fi
}

/* Whether drafts are worth while is measured: any answer may come out. */
inline set_length()
{
#ifdef ADAPTIVE
    if :: quiet = 0 :: quiet = 1 fi
#else
    skip
#endif
}

/* sequence_offer: the newer one replaces. */
inline sequence_offer()
{
    if
#if GUARD == LENGTH
    :: at == length && many <= wanted ->
#else
    :: at == length && with == mark && many <= wanted ->
#endif
        has_proposal = 1;
        p_drafts = what;
        p_count = many;
        p_guess = sign;
        p_computed_on = held;
        p_ahead = ahead;
        misses = 0
    :: else -> skip
    fi
}

inline take_up()
{
    up?type, at, what, many, with, sign, held, ahead;
    if :: lost && asked -> lost = 0; asked = 0; misses = 0; reopen = 1 :: else fi; /* what was sent unasked says nothing */
    if :: type == PROPOSAL -> sequence_offer() :: else fi;
    forget_message()
}

inline peers_reopen()
{
    if
    :: reopen ->
        reopen = 0;
        if
        :: assigned -> send_open()
        :: else -> peers_assign()
        fi
    :: else -> skip
    fi
}

inline miss()
{
    wanted = 0;
    missed = 1;
    expired = 0;
    misses++;
    if :: misses >= MISSES_TO_LOSE -> lose() :: else fi
}

inline ask_lost()
{
    if
    :: lost && rest > 0 -> rest--
    :: lost && rest == 0 ->
        rest = 1;
        asked = 1;
        if
        :: empty(down) -> send_down(HEARTBEAT, 0, 0, 0, 0, 0)
        :: nempty(down) -> skip
        fi
    :: !lost -> skip
    fi
}

/* One step over the rows x_n, d_1 .. d_K at the places from cached on; then some of the drafts are accepted, and one more token is the target's. */
inline verify()
{
    count = (has_proposal -> p_count : 0);
    if
    :: has_proposal ->
        assert(p_computed_on == (tokens & FIRST(length))); /* SAFETY: computed on exactly the committed tokens */
        used = 1;
        if
        :: p_ahead -> SEEN(1)
        :: restarted -> SEEN(2)
        :: was_lost -> SEEN(3)
        :: copied && p_drafts == (m_tokens >> length) & FIRST(p_count) -> SEEN(4)
        :: else -> skip
        fi
    :: else -> skip
    fi;
    /* the rows are fed: the newest token, and the drafts behind it */
    target_cache = (target_cache & FIRST(length - 1)) | (TOKEN(tokens, length - 1) << (length - 1)) | (p_drafts << length);
    accepted = 0;
    do
    :: accepted < count -> accepted++
    :: break
    od;
    choose(next);
    new = (p_drafts & FIRST(accepted)) | (next << accepted);
    count = accepted + 1;
    whole = has_proposal && accepted == p_count && next == p_guess
}

inline sequence_commit()
{
    assert(count > 0 && length + count <= LIMIT);
    tokens = tokens | (new << length);
#if GUARD == DIGEST
    mark = DIGEST_ADD(mark, length, new, count);
#elif GUARD == EPOCH
    mark = (whole -> mark : mark + 1);
#endif
    length = length + count;
    cached = length - 1;
    target_cache = target_cache & FIRST(cached);
    assert(target_cache == (tokens & FIRST(length - 1))); /* SAFETY: the target's cache holds the committed tokens but the newest */
    assert(length > old && (tokens & FIRST(old)) == was); /* SAFETY: what was committed stays */
    has_proposal = 0;
    wanted = 0;
    p_drafts = 0; p_count = 0; p_guess = 0; p_computed_on = 0; p_ahead = 0
}

inline peers_commit()
{
    if
    :: !assigned || (lost && !finish) || (!known && finish) -> skip /* it will get an Open with everything, or needs none */
    :: else ->
        wanted = (finish -> 0 : WANTED(length));
        if
        :: wanted == 0 && !finish -> missed = 1
        :: missed && !finish -> send_open()
        :: else -> expired = 0; send_down(COMMIT, old, new, count, mark, finish)
        fi
    fi
}

#define EXPECTED (assigned && !lost && wanted > 0 && !has_proposal)
#if !defined(REPEAT) || defined(GREEDY) /* a turn of reading ends when nothing is left, */
#define MAY_TAKE  1
#define MAY_LEAVE empty(up)
#define COUNT_TURN skip
#else /* or when as many were read as there may have been */
#define MAY_TAKE  turn < ROOM
#define MAY_LEAVE (empty(up) || turn == ROOM)
#define COUNT_TURN turn++
#endif

active proctype lead()
{
    mtype type;
    byte at, what, many, with, held, turn, accepted, count, new, old, was;
    bit sign, ahead, taken, next, whole, finish;

start:
    atomic {
#ifdef REPEAT
        choose(tokens);
#endif
        length = 1;
#if GUARD == DIGEST
        mark = DIGEST_OF(tokens, 1);
#endif
        cached = 0;
        target_cache = 0;
        missed = 0;
        has_proposal = 0;
        ended = 0;
        set_length();
        peers_assign()
    };
    do
    :: atomic { ask_lost() };
        /* peers_gather: all that came, and what follows from it; and then peers_wait if something is expected */
        do
        :: atomic { nempty(up) && MAY_TAKE -> take_up(); COUNT_TURN }
#ifndef FREE
        :: atomic { faults > 0 && len(up) > 1 -> overtake(up) }
#endif
        :: atomic { MAY_LEAVE ->
            turn = 0;
            peers_reopen();
            if
            :: EXPECTED && expired -> miss(); break
            :: EXPECTED && !expired -> skip
            :: !EXPECTED -> break
            fi };
            if
            :: nempty(up)
#ifdef REPEAT
            :: expired
#else
            :: expired = 1 /* the deadline may pass at any time */
#endif
            fi
        od;
        atomic {
            verify();
            old = length;
            was = tokens;
            sequence_commit();
            if
            :: finish = (length == LIMIT)
            :: finish = 1 /* the end of the text, or a stop */
            fi;
            set_length();
            peers_commit()
        };
        atomic {
            used = 0;
            old = 0; was = 0; new = 0; count = 0; accepted = 0; next = 0; whole = 0;
            if :: finish -> finish = 0; ended = 1; break :: else fi
        }
    od;
#ifdef REPEAT
    goto start
#endif
}
