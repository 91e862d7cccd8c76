// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "../interfaces/IERC20.sol";
import {IJobs} from "../interfaces/IJobs.sol";

interface IHook {
    function beforeAction(uint256 jobId, bytes4 selector, bytes calldata data) external;
    function afterAction(uint256 jobId, bytes4 selector, bytes calldata data) external;
}

/// @title Jobs
/// @notice A minimal ERC-8183 job contract, written from the standard's text: a client escrows a budget, a provider
/// submits work, and the evaluator completes or rejects. For development and tests only.
contract Jobs is IJobs {
    enum Status {
        None,
        Open,
        Funded,
        Submitted,
        Completed,
        Rejected,
        Expired
    }

    struct Job {
        address client;
        address provider;
        address evaluator;
        address hook;
        uint256 budget;
        uint256 expiredAt;
        Status status;
    }

    error WrongStatus(uint256 jobId, Status got);
    error WrongCaller(address got);
    error WrongTerms();
    error NotExpired(uint256 timestamp, uint256 expiredAt);

    event JobCreated(uint256 indexed jobId, address indexed client, address indexed evaluator, string description);
    event JobSubmitted(uint256 indexed jobId, bytes32 deliverable);
    event JobCompleted(uint256 indexed jobId, bytes32 reason);
    event JobRejected(uint256 indexed jobId, address indexed rejector, bytes32 reason);
    event JobExpired(uint256 indexed jobId);

    IERC20 public immutable TOKEN;
    Job[] private _jobs;

    constructor(IERC20 token) {
        TOKEN = token;
    }

    modifier hooked(uint256 jobId, bytes memory data) {
        address hook = _jobs[jobId].hook;
        if (hook != address(0)) IHook(hook).beforeAction(jobId, msg.sig, data);
        _;
        if (hook != address(0)) IHook(hook).afterAction(jobId, msg.sig, data);
    }

    function createJob(
        address provider,
        address evaluator,
        uint256 expiredAt,
        string calldata description,
        address hook
    ) external returns (uint256 jobId) {
        if (evaluator == address(0) || expiredAt <= block.timestamp) revert WrongTerms();
        jobId = _jobs.length;
        _jobs.push(Job(msg.sender, provider, evaluator, hook, 0, expiredAt, Status.Open));
        emit JobCreated(jobId, msg.sender, evaluator, description);
    }

    function setBudget(uint256 jobId, uint256 amount, bytes calldata optParams)
        external
        hooked(jobId, abi.encode(amount, optParams))
    {
        Job storage job = _jobs[jobId];
        _require(jobId, job.status == Status.Open);
        if (msg.sender != job.client && msg.sender != job.provider) revert WrongCaller(msg.sender);
        job.budget = amount;
    }

    function fund(uint256 jobId, uint256 expectedBudget, bytes calldata optParams) external hooked(jobId, optParams) {
        Job storage job = _jobs[jobId];
        _require(jobId, job.status == Status.Open);
        if (msg.sender != job.client) revert WrongCaller(msg.sender);
        if (job.budget == 0 || job.budget != expectedBudget || job.provider == address(0)) revert WrongTerms();
        job.status = Status.Funded;
        TOKEN.transferFrom(msg.sender, address(this), job.budget);
    }

    function submit(uint256 jobId, bytes32 deliverable, bytes calldata optParams)
        external
        hooked(jobId, abi.encode(deliverable, optParams))
    {
        Job storage job = _jobs[jobId];
        _require(jobId, job.status == Status.Funded);
        if (msg.sender != job.provider) revert WrongCaller(msg.sender);
        job.status = Status.Submitted;
        emit JobSubmitted(jobId, deliverable);
    }

    /// @inheritdoc IJobs
    function complete(uint256 jobId, bytes32 reason, bytes calldata optParams)
        external
        hooked(jobId, abi.encode(reason, optParams))
    {
        Job storage job = _jobs[jobId];
        _require(jobId, job.status == Status.Submitted);
        if (msg.sender != job.evaluator) revert WrongCaller(msg.sender);
        job.status = Status.Completed;
        emit JobCompleted(jobId, reason);
        TOKEN.transfer(job.provider, job.budget);
    }

    /// @inheritdoc IJobs
    function reject(uint256 jobId, bytes32 reason, bytes calldata optParams)
        external
        hooked(jobId, abi.encode(reason, optParams))
    {
        Job storage job = _jobs[jobId];
        bool isOpen = job.status == Status.Open;
        _require(jobId, isOpen || job.status == Status.Funded || job.status == Status.Submitted);
        if (msg.sender != (isOpen ? job.client : job.evaluator)) revert WrongCaller(msg.sender);
        job.status = Status.Rejected;
        emit JobRejected(jobId, msg.sender, reason);
        if (!isOpen) TOKEN.transfer(job.client, job.budget);
    }

    /// @notice Refunds the client of an expired job. Anyone may call; no hook is called.
    function claimRefund(uint256 jobId) external {
        Job storage job = _jobs[jobId];
        _require(jobId, job.status == Status.Funded || job.status == Status.Submitted);
        if (block.timestamp < job.expiredAt) revert NotExpired(block.timestamp, job.expiredAt);
        job.status = Status.Expired;
        emit JobExpired(jobId);
        TOKEN.transfer(job.client, job.budget);
    }

    function statusOf(uint256 jobId) external view returns (Status) {
        return _jobs[jobId].status;
    }

    function _require(uint256 jobId, bool isAllowed) private view {
        if (!isAllowed) revert WrongStatus(jobId, _jobs[jobId].status);
    }
}
